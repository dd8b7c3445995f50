// The kind of the sequences of own data: text, token ids or values.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tasks/own/examples.h"
#include "tasks/own/neighbor_correlation.h"

namespace lra::tasks {

// Numbers that are no token ids, among those of all sequences.
struct OddNumbers {
  std::string where;  // the first one
  double first = 0;
  int64_t count = 0, num_numbers = 0;
  bool are_padding = true;  // the same negative number, at the end of sequences

  void add(const std::string& at, const OwnSequence& sequence);
};

// Whole numbers that may stand for a few kinds of things, as 0 to 3 do for the bases of DNA. Ids at
// neighboring positions are uncorrelated; levels of brightness are not.
class FewNumbers {
 public:
  void add(std::span<const float> numbers);
  // True for at least three different ones, which follow on one another from 0 or 1.
  bool may_be_ids() const;

 private:
  static constexpr size_t kMost = 32;

  std::set<float> different_;
  NeighborCorrelation neighbors_;
};

// Sees every sequence, and then decides.
class InputKind {
 public:
  // `input`: auto, text, tokens or values.
  explicit InputKind(std::string input)
      : input_(std::move(input)), may_be_lists_(input_ == "auto") {}

  // Reads text as numbers where these are wanted. `name` of the column may be empty. Throws
  // lra::Error at `where` for a sequence that is empty or of another kind than the first one.
  void add(const std::string& where, const std::string& name, OwnSequence& sequence);
  // The kind of all sequences: text, tokens or values. Throws lra::Error for token ids that are
  // mixed with other numbers, and for lists in text of which some cannot be read.
  std::string settle(std::vector<OwnExample>& examples);

  int64_t channels() const { return channels_; }            // 0: text
  int64_t list_channels() const { return list_channels_; }  // of lists in text; -1: none so far
  const std::vector<std::string>& doubts() const { return doubts_; }

 private:
  void see_list(const std::string& where, const std::string& name, OwnSequence& sequence);
  void take_lists(std::vector<OwnExample>& examples);
  [[noreturn]] void refuse_odd(const std::string& advice) const;

  std::string input_;
  int64_t channels_ = -1;  // -1: not known yet
  OddNumbers odd_;
  bool has_name_of_tokens_ = false, has_fraction_ = false;
  float largest_ = 0;
  FewNumbers few_;
  // All texts so far are lists of numbers, which are then beside the text.
  bool may_be_lists_;
  int64_t list_channels_ = -1;
  std::optional<Error> list_error_;
  std::vector<std::string> doubts_;
};

}  // namespace lra::tasks
