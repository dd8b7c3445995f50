#include "tasks/own/input_kind.h"

#include <cmath>
#include <iomanip>
#include <sstream>

#include "base/quoted.h"
#include "base/text_format.h"
#include "data/text_lines.h"
#include "tasks/own/columns.h"
#include "tasks/own/json_rows.h"

namespace lra::tasks {
namespace {

// A number as a file would write it that holds real ones.
std::string real_text(double value) {
  std::ostringstream text;
  if (std::nearbyint(value) != value) return (text << value, text.str());
  text << std::fixed << std::setprecision(0) << value;
  return text.str() + (value >= 0 && value <= kMaxId ? ".0" : "");
}

// "1 a3 2f", "0x1f": hexadecimal numbers, of which one has a digit.
bool is_hexadecimal(const std::string& text) {
  return text.find_first_not_of("0123456789abcdefABCDEFxX ,;[]") == std::string::npos &&
         text.find_first_of("0123456789") != std::string::npos;
}

}  // namespace

void OddNumbers::add(const std::string& at, const OwnSequence& sequence) {
  num_numbers += static_cast<int64_t>(sequence.numbers.size());
  if (sequence.all_ids()) return;
  if (count == 0) {
    where = at;
    first = sequence.first_odd;
  }
  count += sequence.num_odd;
  are_padding = are_padding && sequence.odd_is_padding && sequence.first_odd == first;
}

void FewNumbers::add(std::span<const float> numbers) {
  if (different_.size() > kMost) return;
  for (size_t i = 0; i < numbers.size() && different_.size() <= kMost; ++i) {
    if (i == 0 || numbers[i] != numbers[i - 1]) different_.insert(numbers[i]);
    if (i > 0) neighbors_.add(numbers[i - 1], numbers[i]);
  }
}

bool FewNumbers::may_be_ids() const {
  constexpr size_t kFewest = 3;
  constexpr double kMostAlike = 0.3;
  if (different_.size() < kFewest || different_.size() > kMost) return false;
  const float first = *different_.begin(), last = *different_.rbegin();
  if (first > 1 || last - first != static_cast<float>(different_.size() - 1)) return false;
  return neighbors_.is_known() && std::abs(neighbors_.value()) <= kMostAlike;
}

// Text as numbers where these are wanted; the same kind of sequence everywhere.
void InputKind::add(const std::string& where, const std::string& name, OwnSequence& sequence) {
  const bool is_text = sequence.channels == 0;
  if (is_text && (input_ == "tokens" || input_ == "values")) {
    sequence = numbers_of_text(sequence.text, where);
  } else if (is_text) {
    sequence.text = document_text(sequence.text, where);
    see_list(where, name, sequence);
  } else if (input_ == "text") {
    refuse_data(where, "the sequence is a list of numbers", "text, as task.input says");
  }
  if (channels_ < 0) channels_ = sequence.channels;
  if (sequence.channels != channels_) {
    const auto kind = [](int64_t channels) {
      return channels == 0   ? std::string("text")
             : channels == 1 ? std::string("a list of numbers")
                             : "a list of " + std::to_string(channels) + " channels";
    };
    refuse_data(where, "a sequence is " + kind(sequence.channels),
                kind(channels_) + ", as the first one");
  }
  if (sequence.text.empty() && sequence.numbers.empty()) {
    refuse_data(where, "a sequence is empty", "at least one position",
                "leave the example out of the file");
  }
  has_name_of_tokens_ = has_name_of_tokens_ || is_name_of_tokens(name);
  odd_.add(where, sequence);
  for (const float number : sequence.numbers) {
    has_fraction_ = has_fraction_ || number < 0 || std::nearbyint(number) != number;
    largest_ = std::max(largest_, number);
  }
  if (!has_fraction_) few_.add(sequence.numbers);
  if (input_ == "tokens" && !sequence.all_ids()) {
    refuse_odd("to read real numbers add --set task.input=values");
  }
}

// Tables hold lists as text: "[3, 17]", and "3 17" in a column of tokens.
void InputKind::see_list(const std::string& where, const std::string& name, OwnSequence& sequence) {
  const std::string& text = sequence.text;
  const bool has_brackets = text.starts_with('[') && text.ends_with(']');
  may_be_lists_ = may_be_lists_ && (has_brackets || is_name_of_tokens(name));
  if (!may_be_lists_ || list_error_) return;
  try {
    OwnSequence list =
        text.starts_with("[[") ? sequence_of_json(text, where) : numbers_of_text(text, where);
    if (list_channels_ < 0) list_channels_ = list.channels;
    if (list.numbers.empty() || list.channels != list_channels_) {
      refuse_data(where, "the list " + in_quotes(text) + " is unlike the first one",
                  "lists of numbers");
    }
    list.text = std::move(sequence.text);
    list.channels = 0;
    sequence = std::move(list);
  } catch (const Error& error) {
    list_error_ = error;
    may_be_lists_ = has_brackets || is_hexadecimal(text);
  }
}

void InputKind::take_lists(std::vector<OwnExample>& examples) {
  if (channels_ != 0) return;
  if (may_be_lists_ && list_error_) throw *list_error_;
  if (may_be_lists_) channels_ = list_channels_;
  for (OwnExample& example : examples) {
    for (OwnSequence& sequence : example.sequences) {
      if (may_be_lists_) {
        sequence.text = {};
        sequence.channels = channels_;
      } else {
        sequence.numbers = {};
      }
    }
  }
}

void InputKind::refuse_odd(const std::string& advice) const {
  refuse_data(odd_.where, "a token is " + real_text(odd_.first),
              "whole numbers from 0 to " + std::to_string(kMaxId), advice);
}

std::string InputKind::settle(std::vector<OwnExample>& examples) {
  constexpr double kFew = 0.05;
  take_lists(examples);
  if (input_ != "auto") return input_;
  const bool are_ids = odd_.count == 0;
  if (channels_ != 1) return channels_ == 0 ? "text" : "values";
  if (are_ids) return "tokens";
  const std::string advice = "to read real numbers add --set task.input=values";
  if (odd_.are_padding) {
    refuse_odd("cut " + real_text(odd_.first) +
               " from the ends of the sequences if it is padding; " + advice);
  }
  if (has_name_of_tokens_) {
    refuse_odd("replace or remove it; " + advice);
  }
  const bool are_few =
      static_cast<double>(odd_.count) <= kFew * static_cast<double>(odd_.num_numbers);
  constexpr float kMostOfPixels = 255;
  const bool are_many = largest_ > kMostOfPixels && largest_ <= static_cast<float>(kMaxId);
  if (!has_fraction_ && (are_many || few_.may_be_ids())) {
    doubts_.push_back(
        "all values are whole numbers up to " + thousands(static_cast<int64_t>(largest_)) +
        ", written as real ones: are they token ids? Write integers; --set task.input=values reads "
        "values without this doubt");
  }
  // float32 does not hold larger whole numbers either.
  if (!are_few && odd_.first <= kMaxId) return "values";
  doubts_.push_back("all numbers are read as values because of " + thousands(odd_.count) + " of " +
                    thousands(odd_.num_numbers) + " that cannot be token ids, the first in " +
                    odd_.where + ": " + real_text(odd_.first) +
                    "; is it a mistake? --set task.input=values reads values without "
                    "this doubt");
  return "values";
}

}  // namespace lra::tasks
