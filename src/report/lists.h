// Lists and texts made of each item of a list.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace lra::report {

// `function`, which may be a member, of each item.
template <typename Items, typename Function>
auto mapped(const Items& items, const Function& function) {
  using Value = std::invoke_result_t<const Function&, decltype(*std::begin(items))>;
  std::vector<std::decay_t<Value>> values;
  for (const auto& item : items) values.push_back(std::invoke(function, item));
  return values;
}

// The texts that are not empty, with ", " or another separator between them.
inline std::string joined(const std::vector<std::string>& texts, const char* between = ", ") {
  std::string all;
  for (const std::string& text : texts) {
    if (!text.empty()) all += (all.empty() ? "" : between) + text;
  }
  return all;
}

// The texts of the items, one after another.
template <typename Items, typename Function>
std::string concatenated(const Items& items, const Function& text_of) {
  return joined(mapped(items, text_of), "");
}

}  // namespace lra::report
