#include "tasks/own/class_names.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/quoted.h"

namespace lra::tasks {
namespace {

template <typename T>
std::optional<T> number_in(const std::string& text) {
  T number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = problem == std::errc() && end == text.data() + text.size();
  return is_number ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<std::string> sorted_class_names(const std::set<std::string>& names) {
  constexpr size_t kFewestTargets = 10;
  std::vector<std::string> sorted(names.begin(), names.end());
  if (sorted.size() == 1) {
    throw Error({.where = "labels",
                 .what = "all examples have the label " + in_quotes(sorted[0]),
                 .expected = "two classes or more"});
  }
  const auto are = [&](const auto& is) { return std::ranges::all_of(sorted, is); };
  if (are([](const auto& name) { return number_in<int64_t>(name).has_value(); })) {
    std::ranges::stable_sort(sorted, {}, [](const auto& n) { return *number_in<int64_t>(n); });
  } else if (sorted.size() >= kFewestTargets &&
             are([](const auto& name) { return number_in<double>(name).has_value(); })) {
    throw Error({.where = "labels",
                 .what = "they are real numbers, such as " + quoted_list(sorted),
                 .expected = "names or whole numbers of classes",
                 .advice = "replace each number by that of a class"});
  }
  return sorted;
}

}  // namespace lra::tasks
