#include "tasks/own/examples.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/quoted.h"

namespace lra::tasks {

void refuse_data(const std::string& where, const std::string& what, const std::string& expected,
                 const std::string& advice) {
  throw Error({.where = where, .what = what, .expected = expected, .advice = advice});
}

void add_number(double value, bool is_whole, const std::string& where, OwnSequence& to) {
  const auto number = static_cast<float>(value);
  if (!std::isfinite(number)) {
    refuse_data(where, "a value is NaN, infinite or too large for float32", "finite numbers",
                "replace missing values before the import");
  }
  const bool is_odd = !is_whole || value < 0 || value > static_cast<double>(kMaxId);
  if (is_odd && to.num_odd++ == 0) {
    to.first_odd = value;
    to.odd_is_padding = is_whole && value < 0 && !to.numbers.empty();
  }
  to.odd_is_padding = to.odd_is_padding && is_odd && value == to.first_odd;
  to.numbers.push_back(number);
  const auto lost = static_cast<float>(value - number);
  if (lost == 0 && to.lost.empty()) return;
  to.lost.resize(to.numbers.size() - 1);
  to.lost.push_back(lost);
}

void OwnSequence::add(const OwnSequence& other) {
  if (num_odd == 0) first_odd = other.first_odd;
  num_odd += other.num_odd;
  odd_is_padding = false;
  if (!other.lost.empty() || !lost.empty()) {
    lost.resize(numbers.size());
    lost.insert(lost.end(), other.lost.begin(), other.lost.end());
    lost.resize(numbers.size() + other.numbers.size());
  }
  numbers.insert(numbers.end(), other.numbers.begin(), other.numbers.end());
}

OwnSequence numbers_of_text(const std::string& text, const std::string& where) {
  constexpr std::string_view kBetween = " \t\r\n,;[]()";
  OwnSequence sequence{.channels = 1};
  for (size_t at = text.find_first_not_of(kBetween); at != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const char* const begin = text.data() + at;
    const char* const stop = text.data() + end;
    double value = 0;
    int64_t whole = 0;
    const auto [number_end, problem] = std::from_chars(begin, stop, value);
    if (problem != std::errc() || number_end != stop) {
      refuse_data(where, in_quotes(text.substr(at, end - at)) + " is not a number", "numbers",
                  "name a column of texts with --set task.sequences=NAME");
    }
    const auto [whole_end, not_whole] = std::from_chars(begin, stop, whole);
    add_number(value, not_whole == std::errc() && whole_end == stop, where, sequence);
    at = text.find_first_not_of(kBetween, end);
  }
  return sequence;
}

std::string short_number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

bool is_single_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

std::string split_of_name(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (lower == "train" || lower == "training") return "train";
  if (lower == "test" || lower == "testing") return "test";
  const bool is_val = lower == "val" || lower == "valid" || lower == "validation" || lower == "dev";
  return is_val ? "val" : "";
}

std::string split_of_file(const std::string& path) {
  constexpr std::string_view kBetween = "-_. ";
  const std::string name = std::filesystem::path(path).filename().string();
  std::set<std::string> found;
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find_first_of(kBetween, begin), name.size());
    found.insert(split_of_name(std::string_view(name).substr(begin, end - begin)));
    begin = end + 1;
  }
  found.erase("");
  return found.size() == 1 ? *found.begin() : "";
}

}  // namespace lra::tasks
