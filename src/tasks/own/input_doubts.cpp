#include "tasks/own/input_doubts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "base/quoted.h"
#include "base/text_format.h"
#include "tasks/own/token_ends.h"
#include "tasks/split_checks.h"

namespace lra::tasks {
namespace {

constexpr size_t kShortestRun = 8;  // positions

// The words of the last position if at least kShortestRun positions are like it, and not all.
std::optional<std::vector<int32_t>> run_at_end(std::span<const int32_t> words, size_t channels) {
  if (words.size() <= kShortestRun * channels) return std::nullopt;
  const auto last = words.last(channels);
  size_t run = 1;
  const size_t length = words.size() / channels;
  while (run < length &&
         std::ranges::equal(words.subspan((length - run - 1) * channels, channels), last)) {
    ++run;
  }
  if (run < kShortestRun || run == length) return std::nullopt;
  return std::vector<int32_t>(last.begin(), last.end());
}

// Numbers of sequences, by the position that their run at one end repeats.
using Runs = std::map<std::vector<int32_t>, int64_t>;

int64_t most_of(const Runs& runs) {
  int64_t most = 0;
  for (const auto& [position, count] : runs) most = std::max(most, count);
  return most;
}

// Padded sequences have one length, and the same position again and again at one of their ends.
// Pictures with a border have it at both.
std::optional<std::string> doubt_of_padding(const Split& split, const std::string& name,
                                            const CustomConfig& config) {
  constexpr double kLeast = 0.25, kMostAtTheOtherEnd = 0.05;
  const auto channels = static_cast<size_t>(config.input == "values" ? config.channels : 1);
  Runs begin, end;
  std::vector<int32_t> words, backwards;
  for (int64_t i = 0; i < split.size() * config.towers; ++i) {
    const int64_t example = i / config.towers, tower = i % config.towers;
    words.resize(static_cast<size_t>(split.sequence_length(example, tower)) * channels);
    split.read_tokens(example, tower, words);
    if (const auto last = run_at_end(words, channels)) ++end[*last];
    backwards.assign(words.rbegin(), words.rend());  // channels too, which a run does not mind
    if (const auto first = run_at_end(backwards, channels)) ++begin[*first];
  }
  const auto count = static_cast<double>(split.size() * config.towers);
  const auto share_at = [&](const Runs& runs) {
    return static_cast<double>(most_of(runs)) / count;
  };
  const bool is_at_end = share_at(end) >= share_at(begin);
  const double share = share_at(is_at_end ? end : begin);
  if (share < kLeast || share_at(is_at_end ? begin : end) > kMostAtTheOtherEnd) return std::nullopt;
  return percent(share, 0) + " of the sequences of " + name + (is_at_end ? " end" : " begin") +
         " with the same " + (config.input == "values" ? "values" : "token") + " at " +
         std::to_string(kShortestRun) +
         " or more positions: is it padding? Leave it out, or give the lengths";
}

// No white space, a separator of folders and an extension.
bool is_file_name(std::span<const uint8_t> text) {
  const std::string_view name(reinterpret_cast<const char*>(text.data()), text.size());
  const size_t dot = name.rfind('.'), separator = name.find_last_of("/\\");
  return separator != name.npos && dot != name.npos && dot > separator && name.size() - dot <= 6 &&
         name.find_first_of(" \t\r\n") == name.npos;
}

std::optional<std::string> doubt_of_file_names(const Split& split, const std::string& name) {
  constexpr double kLeast = 0.9;
  int64_t count = 0;
  for (int64_t i = 0; i < split.size(); ++i) count += is_file_name(split.stored_bytes(i, 0));
  if (static_cast<double>(count) < kLeast * static_cast<double>(split.size())) return std::nullopt;
  const std::span<const uint8_t> first = split.stored_bytes(0, 0);
  return "the texts of " + name + " are names of files, such as " +
         in_quotes(std::string(first.begin(), first.end())) + ": were their contents meant?";
}

// Doubts a square array, whose columns may be the examples; they are expected in the rows.
std::optional<std::string> doubt_of_columns(const Dataset& dataset, const CustomConfig& config) {
  int64_t examples = 0;
  for (const char* name : {"train", "val", "test"}) {
    examples += dataset.split(name).size();
    if (examples != config.longest || examples < kFewestToJudge) continue;
    const std::string count = std::to_string(examples);
    return "there are " + count + " examples of " + count +
           " positions: are they the columns of the array? Examples are expected in its rows";
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> doubts_of_inputs(const Dataset& dataset, const CustomConfig& config) {
  std::vector<std::string> doubts;
  const bool may_be_padded = config.input != "text" && config.shortest == config.longest;
  if (may_be_padded && config.channels == 1) {
    if (auto doubt = doubt_of_columns(dataset, config)) doubts.push_back(std::move(*doubt));
  }
  if (config.input == "tokens") doubts = doubts_of_token_ends(dataset, config);
  for (const char* name : {"train", "val", "test"}) {
    const Split split = dataset.split(name);
    if (split.size() < kFewestToJudge) continue;
    std::optional<std::string> doubt;
    if (may_be_padded) doubt = doubt_of_padding(split, name, config);
    if (config.input == "text") doubt = doubt_of_file_names(split, name);
    if (doubt) doubts.push_back(std::move(*doubt));
  }
  return doubts;
}

}  // namespace lra::tasks
