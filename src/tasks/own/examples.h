// Examples of a user's own data as their files have them, before they are a dataset.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lra::tasks {

// Names of the columns that hold a file's examples, or of the arrays of a .npz. Empty: names in
// common use (columns.h).
struct ColumnSettings {
  std::string sequences;  // one, or two that commas separate
  std::string label, split;
};

// Largest whole number that float32 and an embedding table take.
inline constexpr int64_t kMaxId = (1 << 24) - 1;

// Text, or numbers.
struct OwnSequence {
  std::string text = {};            // where channels is 0
  std::vector<float> numbers = {};  // `channels` for each position
  int64_t channels = 0;
  // The part of each number that float32 lost; empty if it holds all of them.
  std::vector<float> lost = {};
  // Numbers that are not written as whole ones from 0 to kMaxId: how many, the first one, and
  // whether they are all equal and at the end of the sequence.
  int64_t num_odd = 0;
  double first_odd = 0;
  bool odd_is_padding = false;

  bool all_ids() const { return num_odd == 0; }
  // Appends the numbers of another sequence.
  void add(const OwnSequence& other);
};

struct OwnExample {
  std::vector<OwnSequence> sequences = {};  // one or two
  std::string label = {};                   // as it is written
  std::string split = {};                   // "train", "val", "test"; empty: the file does not say
  // Values in columns that are not read and may be ids, by the number of the column in the schema:
  // whole numbers in their order, or hashes.
  std::vector<std::pair<uint32_t, uint64_t>> ids = {};

  std::optional<uint64_t> id_in(uint32_t column) const {
    for (const auto& [number, key] : ids) {
      if (number == column) return key;
    }
    return std::nullopt;
  }
};

// Throws lra::Error with these parts.
[[noreturn]] void refuse_data(const std::string& where, const std::string& what,
                              const std::string& expected, const std::string& advice = "");

// `where` names file and line, row or element.
using OwnExampleSink = std::function<void(const std::string& where, OwnExample&& example)>;

// Adds a number to a sequence. Throws lra::Error at `where` for NaN and infinity.
void add_number(double value, bool is_whole, const std::string& where, OwnSequence& to);

// Numbers between spaces, commas or semicolons, in brackets or without: "3 17 5", "[0.5, 1.25]".
OwnSequence numbers_of_text(const std::string& text, const std::string& where);

// True for one number and nothing else.
bool is_single_number(std::string_view text);

// Writes a number in at most six digits: "0.25", "1e+20".
std::string short_number(double value);

// "train", "val" or "test" for a name in common use as "validation"; empty for others.
std::string split_of_name(std::string_view name);
// The same of the only word of a file's name that is one: "train" of "a/train-00000-of-00002.csv".
std::string split_of_file(const std::string& path);

}  // namespace lra::tasks
