#include "tasks/own/channel_tally.h"

#include <bit>

#include "base/text_format.h"

namespace lra::tasks {
namespace {

// Calls `act(words)` with the sequences of each example in turn, and `end()` after each example.
template <typename Act, typename End>
void visit_examples(const Split& split, const CustomConfig& config, Act&& act, End&& end) {
  std::vector<int32_t> words;
  for (int64_t i = 0; i < split.size(); ++i) {
    for (int64_t tower = 0; tower < config.towers; ++tower) {
      words.resize(static_cast<size_t>(split.sequence_length(i, tower) * config.channels));
      split.read_tokens(i, tower, words);
      act(words);
    }
    end();
  }
}

// Sums over the examples of one number of each.
struct Sums {
  double sum = 0, squares = 0;

  void add(double x) {
    sum += x;
    squares += x * x;
  }
  double deviation(double count) const {
    const double mean = sum / count;
    return std::sqrt(std::max(0.0, squares / count - mean * mean));
  }
};

// `others_end` is the end of the others' range.
bool stands_apart(const LeastValue& lowest, double others_end, double count) {
  constexpr double kFarthest = 3, kLeastShare = 0.001, kMostShare = 0.5;
  constexpr int64_t kFewest = 10;
  const double range = others_end - lowest.next;
  const double share = static_cast<double>(lowest.count) / count;
  return range > 0 && lowest.next - lowest.value > kFarthest * range && lowest.count >= kFewest &&
         share >= kLeastShare && share <= kMostShare;
}

}  // namespace

std::vector<ChannelTally> tally_channels(const Split& split, const CustomConfig& config) {
  const auto num_channels = static_cast<size_t>(config.channels);
  std::vector<ChannelTally> channels(num_channels);
  visit_examples(
      split, config,
      [&](const std::vector<int32_t>& words) {
        for (size_t at = 0; at < words.size(); ++at) {
          ChannelTally& channel = channels[at % num_channels];
          channel.add(std::bit_cast<float>(words[at]));
          if (at >= num_channels) channel.repeats += words[at] == words[at - num_channels];
        }
      },
      [] {});
  return channels;
}

const LeastValue* mark_of(const ChannelTally& channel) {
  if (stands_apart(channel.lowest, -channel.highest.value, channel.count)) return &channel.lowest;
  if (stands_apart(channel.highest, -channel.lowest.value, channel.count)) return &channel.highest;
  return nullptr;
}

std::string doubt_of_mark(const ChannelTally& tally, const std::string& split,
                          const std::string& channel) {
  const LeastValue& mark = *mark_of(tally);
  return std::string(&mark == &tally.lowest ? "the lowest" : "the highest") + " value of " + split +
         channel + " occurs " + thousands(mark.count) +
         " times and is far from all others: does it mark what is missing, as -999 does?";
}

std::string of_channel(size_t channel, int64_t num_channels) {
  return num_channels == 1 ? "" : " in channel " + std::to_string(channel);
}

std::string listed(const std::vector<size_t>& numbers) {
  constexpr size_t kMost = 6;
  std::string list;
  for (size_t i = 0; i < std::min(numbers.size(), kMost); ++i) {
    list += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  }
  return list + (numbers.size() > kMost ? " ..." : "");
}

std::vector<ChannelScale> scales_of(const Split& split, const std::vector<ChannelTally>& tally,
                                    const CustomConfig& config) {
  const size_t num_channels = tally.size();
  const auto size = static_cast<double>(split.size());
  std::vector<ChannelScale> scales(num_channels);
  for (size_t c = 0; c < num_channels; ++c) scales[c].mean = tally[c].mean();
  // Means over the values of one example of their differences from the mean of all, and of the
  // squares of these.
  std::vector<Sums> differences(num_channels), squares(num_channels);
  std::vector<double> difference(num_channels), square(num_channels);
  double count = 0;
  visit_examples(
      split, config,
      [&](const std::vector<int32_t>& words) {
        count += static_cast<double>(words.size() / num_channels);
        for (size_t at = 0; at < words.size(); ++at) {
          const size_t c = at % num_channels;
          const double apart = std::bit_cast<float>(words[at]) - scales[c].mean;
          difference[c] += apart;
          square[c] += apart * apart;
        }
      },
      [&] {
        for (size_t c = 0; c < num_channels; ++c) {
          differences[c].add(difference[c] / std::max(1.0, count));
          squares[c].add(square[c] / std::max(1.0, count));
          difference[c] = square[c] = 0;
        }
        count = 0;
      });
  for (size_t c = 0; c < num_channels; ++c) {
    scales[c].mean_error = differences[c].deviation(size) / std::sqrt(size);
    const double mean = squares[c].sum / size;
    scales[c].deviation = std::sqrt(mean);
    // A square root has half the relative error.
    scales[c].relative_error =
        mean > 0 ? 0.5 * squares[c].deviation(size) / (mean * std::sqrt(size)) : 0;
  }
  return scales;
}

}  // namespace lra::tasks
