#include "tasks/own/column_names.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/quoted.h"
#include "tasks/own/examples.h"

namespace lra::tasks {
namespace {

// A name in common use for a column that must not be dropped, or must not be part of a sequence.
struct OddName {
  std::string_view name;
  bool ignored, input;  // refused there
  const char* question;
  const char* advice;
};
constexpr const char* kIsMask = "does it say which positions are padding?";
constexpr const char* kCutPadding = "cut the padding from the sequences, and remove the column";
constexpr const char* kIsSplit = "does it name the split?";
constexpr const char* kNameSplit =
    "if it holds train, val and test, name it with --set task.split=NAME; else remove or rename it";
constexpr const char* kIsIndex = "is it the number of the row?";
constexpr const char* kDropIndex =
    "remove it (pandas: to_csv(..., index=False)), or rename it if it is part of the sequence";
constexpr const char* kIsLabel = "is it another label, or a prediction of it?";
constexpr const char* kDropLabel = "remove it, or rename it if it is part of the sequence";
constexpr std::array<OddName, 36> kOddNames = {{
    {"attention_mask", true, false, kIsMask, kCutPadding},
    {"input_mask", true, false, kIsMask, kCutPadding},
    {"padding_mask", true, false, kIsMask, kCutPadding},
    {"mask", true, false, kIsMask, kCutPadding},
    {"lengths", true, false, kIsMask, kCutPadding},
    {"set", true, true, kIsSplit, kNameSplit},
    {"partition", true, true, kIsSplit, kNameSplit},
    {"fold", true, true, kIsSplit, kNameSplit},
    {"subset", true, true, kIsSplit, kNameSplit},
    {"usage", true, true, kIsSplit, kNameSplit},
    {"is_test", true, true, kIsSplit, kNameSplit},
    {"is_train", true, true, kIsSplit, kNameSplit},
    {"is_val", true, true, kIsSplit, kNameSplit},
    {"is_valid", true, true, kIsSplit, kNameSplit},
    {"is_validation", true, true, kIsSplit, kNameSplit},
    {"", false, true, kIsIndex, kDropIndex},
    {"unnamed: 0", false, true, kIsIndex, kDropIndex},
    {"__index_level_0__", false, true, kIsIndex, kDropIndex},
    {"index", false, true, kIsIndex, kDropIndex},
    {"id", false, true, kIsIndex, kDropIndex},
    {"idx", false, true, kIsIndex, kDropIndex},
    {"row", false, true, kIsIndex, kDropIndex},
    {"row_id", false, true, kIsIndex, kDropIndex},
    {"kfold", true, true, kIsSplit, kNameSplit},
    {"cv", false, true, kIsSplit, kNameSplit},
    {"train", false, true, kIsSplit, kNameSplit},
    {"test", false, true, kIsSplit, kNameSplit},
    {"label", false, true, kIsLabel, kDropLabel},
    {"labels", false, true, kIsLabel, kDropLabel},
    {"class", false, true, kIsLabel, kDropLabel},
    {"target", false, true, kIsLabel, kDropLabel},
    {"y", false, true, kIsLabel, kDropLabel},
    {"prediction", false, true, kIsLabel, kDropLabel},
    {"pred", false, true, kIsLabel, kDropLabel},
    {"prob", false, true, kIsLabel, kDropLabel},
    {"score", false, true, kIsLabel, kDropLabel},
}};

// Returns the part that a column shares with others that are numbered alike: "f" of "f12", "lag" of
// "lag-3" and of "lag", nothing of a number.
std::string stem_of(const std::string& name) {
  const std::string plain = plain_name(name);
  if (is_single_number(plain)) return "";
  const std::string numbered = plain.substr(0, plain.find_last_not_of("0123456789") + 1);
  return numbered.substr(0, numbered.find_last_not_of("-_. ") + 1);
}

}  // namespace

std::string plain_name(std::string_view name) {
  constexpr std::string_view kSpace = " \t";
  const size_t begin = std::min(name.find_first_not_of(kSpace), name.size());
  std::string plain(name.substr(begin, name.find_last_not_of(kSpace) + 1 - begin));
  std::ranges::transform(plain, plain.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return plain;
}

void refuse_odd_name(const std::string& name, bool is_input, const std::string& where) {
  const std::string plain = plain_name(name);
  for (const OddName& odd : kOddNames) {
    if (plain != odd.name || !(is_input ? odd.input : odd.ignored)) continue;
    refuse_data(where,
                "column " + in_quotes(name) +
                    (is_input ? " would be a position of the sequence: " : " is not read: ") +
                    odd.question,
                is_input ? "columns of the sequence, label and split"
                         : "sequences, label, split and columns that can be ignored",
                odd.advice);
  }
}

void refuse_unlike_names(const std::vector<std::string>& inputs, const std::string& where) {
  constexpr size_t kFewestAlike = 8, kLargestShare = 10;
  std::map<std::string, std::vector<std::string>> by_stem;
  for (const std::string& name : inputs) by_stem[stem_of(name)].push_back(name);
  const auto size_of = [](const auto& entry) { return entry.second.size(); };
  const auto usual = std::ranges::max_element(by_stem, {}, size_of);
  const size_t num_others = inputs.size() - usual->second.size();
  if (usual->second.size() < kFewestAlike || num_others == 0 ||
      num_others * kLargestShare > inputs.size()) {
    return;
  }
  std::vector<std::string> others;
  for (const auto& [stem, names] : by_stem) {
    if (stem != usual->first) others.insert(others.end(), names.begin(), names.end());
  }
  refuse_data(where,
              quoted_list(others, 8) + " would be positions of the sequence, among " +
                  std::to_string(usual->second.size()) + " columns such as " +
                  in_quotes(usual->second.front()),
              "columns of the sequence, label and split",
              "remove what is not part of the sequence, or name it as the others");
}

void refuse_order_of_words(const std::vector<std::string>& inputs, const std::string& where) {
  constexpr size_t kFewest = 11;
  if (inputs.size() < kFewest || !std::ranges::is_sorted(inputs)) return;
  std::vector<int64_t> numbers;
  for (const std::string& name : inputs) {
    const std::string digits = name.substr(name.find_last_not_of("0123456789") + 1);
    if (digits.empty() || digits.size() > 18 || stem_of(name) != stem_of(inputs[0])) return;
    numbers.push_back(std::stoll(digits));
  }
  const auto later = std::ranges::is_sorted_until(numbers);
  if (later == numbers.end()) return;
  refuse_data(where,
              "column " + in_quotes(inputs[static_cast<size_t>(later - numbers.begin())]) +
                  " comes after " +
                  in_quotes(inputs[static_cast<size_t>(later - numbers.begin()) - 1]) +
                  ": the columns are in the order of their names as words",
              "the order of their numbers, which is that of the positions", "reorder the columns");
}

}  // namespace lra::tasks
