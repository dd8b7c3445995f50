#include "tasks/own/token_ends.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/text_format.h"
#include "tasks/split_checks.h"

namespace lra::tasks {
namespace {

// Counts of each id at one end of the sequences of a split.
struct EndCounts {
  std::vector<int64_t> outermost;  // sequences with it in the first (or last) position
  std::vector<int64_t> runs;       // sequences with it in that and the next position
  std::vector<int64_t> in_runs;    // positions up to another id

  void add(std::span<const int32_t> ids) {  // read from this end
    const auto id = static_cast<size_t>(ids.front());
    const auto run = std::ranges::find_if(ids, [&](int32_t other) { return other != ids.front(); });
    ++outermost.at(id);
    runs.at(id) += run - ids.begin() > 1;
    in_runs.at(id) += run - ids.begin();
  }
};

struct Ends {
  EndCounts first, last;
  std::vector<int64_t> anywhere;  // positions
  int64_t num_sequences = 0;
};

Ends ends_of(const Split& split, const CustomConfig& config) {
  const auto vocabulary = static_cast<size_t>(config.vocabulary);
  const std::vector<int64_t> none(vocabulary);
  Ends ends{{none, none, none}, {none, none, none}, none};
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < split.size() * config.towers; ++i) {
    const int64_t example = i / config.towers, tower = i % config.towers;
    ids.resize(static_cast<size_t>(split.sequence_length(example, tower)));
    if (ids.empty()) continue;
    split.read_tokens(example, tower, ids);
    for (const int32_t id : ids) ++ends.anywhere.at(static_cast<size_t>(id));
    ends.first.add(ids);
    std::ranges::reverse(ids);
    ends.last.add(ids);
    ++ends.num_sequences;
  }
  return ends;
}

// An id is stored one above the user's.
std::string token(size_t id) { return "token " + std::to_string(id - 1); }

std::optional<std::string> doubt_of_runs(const Ends& ends, const EndCounts& at,
                                         const std::string& where, const std::string& name) {
  constexpr double kLeast = 0.25;
  for (size_t id = 1; id < at.runs.size(); ++id) {
    const double share = static_cast<double>(at.runs[id]) / static_cast<double>(ends.num_sequences);
    if (share < kLeast || at.in_runs[id] != ends.anywhere[id]) continue;
    return token(id) + " occurs only in runs at the " + where + " of sequences, of " +
           percent(share, 0) + " of those of " + name + ": is it padding? Leave it out";
  }
  return std::nullopt;
}

// Doubts marks such as BOS and EOS that one of two splits lacks.
std::optional<std::string> doubt_of_marks(const Ends& train, const EndCounts& at_train,
                                          const Ends& other, const EndCounts& at_other,
                                          const std::string& what, const std::string& name) {
  constexpr double kAll = 0.99, kHalf = 0.5;
  for (size_t id = 1; id < at_train.outermost.size(); ++id) {
    const double share = static_cast<double>(at_train.outermost[id]) /
                         static_cast<double>(train.num_sequences),
                 found = static_cast<double>(at_other.outermost[id]) /
                         static_cast<double>(other.num_sequences);
    if (std::max(share, found) < kAll || std::min(share, found) > kHalf) continue;
    return token(id) + " is the " + what + " of " + percent(share, 0) +
           " of the sequences of train and of " + percent(found, 0) + " of those of " + name +
           ": were they encoded in the same way?";
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> doubts_of_token_ends(const Dataset& dataset, const CustomConfig& config) {
  std::vector<std::string> doubts;
  const auto add = [&](std::optional<std::string> doubt) {
    if (doubt) doubts.push_back(std::move(*doubt));
  };
  std::optional<Ends> train;
  for (const char* name : {"train", "val", "test"}) {
    const Split split = dataset.split(name);
    if (split.size() < kFewestToJudge) continue;
    Ends ends = ends_of(split, config);
    if (config.shortest != config.longest) {
      add(doubt_of_runs(ends, ends.first, "beginning", name));
      add(doubt_of_runs(ends, ends.last, "end", name));
    }
    if (train) {
      add(doubt_of_marks(*train, train->first, ends, ends.first, "first", name));
      add(doubt_of_marks(*train, train->last, ends, ends.last, "last", name));
    } else if (name == std::string_view("train")) {
      train = std::move(ends);
    }
  }
  return doubts;
}

}  // namespace lra::tasks
