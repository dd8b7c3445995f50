#include "tasks/own/channel_shift.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "base/text_format.h"
#include "data/drawn_examples.h"

namespace lra::tasks {
namespace {

// Fewer examples may differ by chance.
constexpr int64_t kFewestForRatio = 200, kFewestForChannels = 100;

// The standard error of the logarithm of the ratio of two deviations.
double error_of_ratio(const ChannelScale& a, const ChannelScale& b) {
  return std::hypot(a.relative_error, b.relative_error);
}

// The distance of that logarithm from 0, in standard errors.
double errors_of_ratio(const ChannelScale& a, const ChannelScale& b) {
  return std::abs(std::log(a.deviation / b.deviation)) / std::max(error_of_ratio(a, b), 1e-9);
}

constexpr double kFewestErrorsOfRatio = 6;

// A sentence if most channels deviate otherwise than in train, or around another mean. Rare events
// may be missing from a channel of a small split.
std::optional<std::string> doubt_of_range(const SplitValues& train, const SplitValues& other,
                                          const CustomConfig& config) {
  constexpr double kMostTimes = 2, kMostTimesOfFew = 3.5, kMostApart = 2, kRounding = 1e-6;
  const bool are_few = std::min(train.size(), other.size()) < kFewestForRatio;
  int64_t num_varying = 0, num_other = 0;
  std::string first;
  for (size_t c = 0; c < train.tally.size(); ++c) {
    if (!train.tally[c].varies() || !other.tally[c].varies()) continue;
    ++num_varying;
    const double center = train.tally[c].mean(), noise = kRounding * std::abs(center);
    const double usual = std::max(noise, train.tally[c].deviation_from(center));
    const double found = std::max(noise, other.tally[c].deviation_from(center));
    const double times = std::max(found / usual, usual / found);
    const bool is_apart = std::abs(other.tally[c].mean() - center) > kMostApart * usual;
    const bool is_certain =
        !are_few && errors_of_ratio(train.scales[c], other.scales[c]) > kFewestErrorsOfRatio;
    if (!is_apart && times <= (is_certain ? kMostTimes : kMostTimesOfFew)) continue;
    if (num_other++ > 0) continue;
    first = "values of " + other.name + of_channel(c, config.channels) +
            (is_apart ? " have the mean " + fixed(other.tally[c].mean(), 3) + ", those of train " +
                            fixed(center, 3) + " with a deviation of " + fixed(usual, 3)
                      : " deviate by " + fixed(found, 3) +
                            " from the mean of train, those of train by " + fixed(usual, 3)) +
            ": are they in another unit, or scaled?";
  }
  if (2 * num_other <= num_varying) return std::nullopt;
  return first;
}

// The channels without those that follow an earlier one, as the prices of one share do.
std::vector<size_t> independent(const std::vector<size_t>& channels, const SplitValues& values) {
  constexpr int64_t kMostDrawn = 50;
  constexpr double kFollows = 0.9;  // correlation
  const std::vector<ChannelScale>& scales = values.scales;
  const Split& split = values.split;
  const size_t step = scales.size();
  std::vector<double> products(step * step);
  std::vector<double> x(step);
  std::vector<int32_t> words;
  for (const int64_t i : drawn_examples(split.size(), kMostDrawn)) {
    words.resize(static_cast<size_t>(split.sequence_length(i, 0)) * step);
    split.read_tokens(i, 0, words);
    for (size_t at = 0; at < words.size(); at += step) {
      for (const size_t c : channels) {
        x[c] = (std::bit_cast<float>(words[at + c]) - scales[c].mean) / scales[c].deviation;
        for (const size_t other : channels) {
          if (other <= c) products[c * step + other] += x[c] * x[other];
        }
      }
    }
  }
  std::vector<size_t> chosen;
  for (const size_t c : channels) {
    const bool follows = std::ranges::any_of(chosen, [&](size_t other) {
      const double squares = products[c * step + c] * products[other * step + other];
      return std::abs(products[c * step + other]) > kFollows * std::sqrt(squares);
    });
    if (!follows) chosen.push_back(c);
  }
  return chosen;
}

// A sentence if the deviations of most channels are those of train times one factor, as those of
// feet and meters are. Other persons or years change each channel by a factor of its own.
std::optional<std::string> doubt_of_unit(const SplitValues& train, const SplitValues& other) {
  constexpr double kLeast = 1.3, kUnlike = 0.04, kMostError = 0.04, kShare = 0.75;
  constexpr size_t kFewestChannels = 3;
  std::vector<std::pair<double, size_t>> ratios;  // logarithms, and channels
  for (size_t c = 0; c < train.scales.size(); ++c) {
    if (!train.tally[c].varies() || !other.tally[c].varies()) continue;
    ratios.emplace_back(std::log(other.scales[c].deviation / train.scales[c].deviation), c);
  }
  if (ratios.size() < kFewestChannels) return std::nullopt;
  std::ranges::sort(ratios);
  const double common = ratios[ratios.size() / 2].first;
  if (std::abs(common) < std::log(kLeast)) return std::nullopt;
  std::vector<size_t> alike;
  for (const auto& [ratio, c] : ratios) {
    const double error = error_of_ratio(train.scales[c], other.scales[c]);
    if (std::abs(ratio - common) <= kUnlike && error <= kMostError &&
        std::abs(ratio) > kFewestErrorsOfRatio * error) {
      alike.push_back(c);
    }
  }
  std::ranges::sort(alike);
  if (static_cast<double>(alike.size()) < kShare * static_cast<double>(ratios.size()) ||
      independent(alike, other).size() < kFewestChannels) {
    return std::nullopt;
  }
  return "values of " + other.name + " deviate by " + fixed(std::exp(common), 2) +
         " times as much as those of train, in " + std::to_string(alike.size()) + " of " +
         std::to_string(ratios.size()) + " channels alike: are they in another unit?";
}

// How far a channel of one split is from a channel of another. The same channel of two splits of
// one source is alike in both; two channels are not when they are unlike in one.
struct ChannelDistance {
  // The difference of the means in deviations, or the logarithm of the ratio of the deviations.
  static constexpr double kAlike = 0.2, kUnlike = 0.5;
  double in_deviations = 0;
  // The same in standard errors.
  static constexpr double kErrorsAlike = 4, kErrorsUnlike = 10;
  double in_errors = 0;
};

ChannelDistance channel_distance(const Scaling& scaling, const ChannelScale& a, size_t a_channel,
                                 const ChannelScale& b, size_t b_channel) {
  constexpr double kLeastError = 1e-3;  // where means or deviations of all examples are one
  const double a_unit = scaling.deviation(a_channel), b_unit = scaling.deviation(b_channel);
  const double a_deviation = a.deviation * a_unit, b_deviation = b.deviation * b_unit;
  if (a_deviation <= 0 || b_deviation <= 0) {
    const double apart = a_deviation == b_deviation ? 0 : INFINITY;
    return {apart, apart};
  }
  const double apart =
      std::abs(scaling.original(a.mean, a_channel) - scaling.original(b.mean, b_channel));
  const double log_ratio = std::abs(std::log(a_deviation / b_deviation));
  const double error = std::hypot(a.mean_error * a_unit, b.mean_error * b_unit);
  return {.in_deviations = std::max(apart / b_deviation, log_ratio),
          .in_errors = std::max(apart / std::max(error, kLeastError * b_deviation),
                                log_ratio / std::max(error_of_ratio(a, b), kLeastError))};
}

// For each of some channels another one of them to which its distance in train is `alike` at most,
// each taken once; empty if one is like none.
template <typename Distance>
std::vector<size_t> matching_places(const std::vector<size_t>& channels, const Distance& distance,
                                    double alike) {
  std::vector<std::tuple<double, size_t, size_t>> pairs;
  for (size_t i = 0; i < channels.size(); ++i) {
    for (size_t k = 0; k < channels.size(); ++k) {
      if (i != k) pairs.emplace_back(distance(channels[i], channels[k]), i, k);
    }
  }
  std::ranges::sort(pairs);
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> places(channels.size(), kNone);
  std::vector<bool> is_taken(channels.size());
  for (const auto& [apart, i, k] : pairs) {
    if (apart > alike || places[i] != kNone || is_taken[k]) continue;
    places[i] = channels[k];
    is_taken[k] = true;
  }
  if (std::ranges::find(places, kNone) != places.end()) return {};
  return places;
}

// Channels that stand in the places of others, each with the channel of train that it is like.
struct MovedChannels {
  std::vector<size_t> channels, places;
};

// Empty unless every channel of `num_channels` is `alike` to one of train, and some are `unlike`
// their own. Where channels are like none, something else has changed.
template <typename Distance>
MovedChannels moved_channels(size_t num_channels, const Distance& distance, double alike,
                             double unlike) {
  MovedChannels moved;
  for (size_t c = 0; c < num_channels; ++c) {
    const double own = distance(c, c);
    if (own > alike && own < unlike) return {};
    if (own >= unlike) moved.channels.push_back(c);
  }
  moved.places = matching_places(moved.channels, distance, alike);
  return moved;
}

// A sentence if channels have exchanged their places. Standard errors, small in large splits, tell
// channels apart that differ by little.
std::optional<std::string> doubt_of_channel_order(const SplitValues& train,
                                                  const SplitValues& other,
                                                  const Scaling& scaling) {
  using D = ChannelDistance;
  if (std::min(train.size(), other.size()) < kFewestForChannels) return std::nullopt;
  const auto distance = [&](size_t c, size_t of_train) {
    return channel_distance(scaling, other.scales[c], c, train.scales[of_train], of_train);
  };
  MovedChannels moved = moved_channels(
      train.scales.size(), [&](size_t c, size_t k) { return distance(c, k).in_deviations; },
      D::kAlike, D::kUnlike);
  if (moved.places.empty()) {
    moved = moved_channels(
        train.scales.size(), [&](size_t c, size_t k) { return distance(c, k).in_errors; },
        D::kErrorsAlike, D::kErrorsUnlike);
  }
  if (moved.places.empty()) return std::nullopt;
  return "channels " + listed(moved.channels) + " of " + other.name + " are like channels " +
         listed(moved.places) + " of train, and unlike their own: are they in another order?";
}

// A sentence if a few channels of a split are unlike their own of train and all others are as in
// train: another year or person changes most of them a little.
std::optional<std::string> doubt_of_single_channels(const SplitValues& train,
                                                    const SplitValues& other,
                                                    const Scaling& scaling) {
  using D = ChannelDistance;
  if (std::min(train.size(), other.size()) < kFewestForChannels) return std::nullopt;
  std::vector<size_t> changed;
  const size_t num_channels = train.scales.size();
  for (size_t c = 0; c < num_channels; ++c) {
    // Rare events may be missing from a channel of a small split.
    if (!train.tally[c].varies() || !other.tally[c].varies()) continue;
    const D own = channel_distance(scaling, other.scales[c], c, train.scales[c], c);
    if (own.in_errors <= D::kErrorsAlike) continue;
    if (own.in_errors < D::kErrorsUnlike || own.in_deviations < D::kAlike) return std::nullopt;
    changed.push_back(c);
  }
  if (changed.empty() || 2 * changed.size() >= num_channels) return std::nullopt;
  const size_t c = changed[0];
  const auto described = [&](const ChannelScale& scale) {
    return "the mean " + fixed(scaling.original(scale.mean, c), 3) + " and the deviation " +
           fixed(scale.deviation * scaling.deviation(c), 3);
  };
  return "values in channel " + listed(changed) + " of " + other.name + " have " +
         described(other.scales[c]) + ", those of train " + described(train.scales[c]) +
         ", and all other channels are as in train: has it another sign, offset or unit?";
}

// A split that was filled with zeros, or with the last value that was there. An example counts as
// one observation.
std::optional<std::string> doubt_of_repeats(const SplitValues& train, const SplitValues& other,
                                            const CustomConfig& config) {
  constexpr double kMostApart = 0.25, kStandardErrors = 4;
  const double error = 0.5 / std::sqrt(static_cast<double>(other.size()));
  for (size_t c = 0; c < train.tally.size(); ++c) {
    const double usual = train.tally[c].repeats / std::max(1.0, train.tally[c].count);
    const double found = other.tally[c].repeats / std::max(1.0, other.tally[c].count);
    if (std::abs(found - usual) <= std::max(kMostApart, kStandardErrors * error)) continue;
    return percent(found, 0) + " of the values of " + other.name + of_channel(c, config.channels) +
           " are equal to the one before, and " + percent(usual, 0) +
           " of those of train: do they stand for what is missing?";
  }
  return std::nullopt;
}

// The standard errors at least of as many examples of train: a split without the rare events of
// train shows too little of them.
SplitValues with_usual_errors(SplitValues values, const SplitValues& train) {
  const double times =
      std::sqrt(static_cast<double>(train.size()) / static_cast<double>(values.size()));
  for (size_t c = 0; c < values.scales.size(); ++c) {
    ChannelScale& scale = values.scales[c];
    scale.mean_error = std::max(scale.mean_error, times * train.scales[c].mean_error);
    scale.relative_error = std::max(scale.relative_error, times * train.scales[c].relative_error);
  }
  return values;
}

}  // namespace

std::vector<std::optional<std::string>> doubts_of_channels(const SplitValues& train,
                                                           const SplitValues& found,
                                                           const Scaling& scaling,
                                                           const CustomConfig& config) {
  const SplitValues other = with_usual_errors(found, train);
  // Channels in another order have other units as well.
  std::optional<std::string> doubt = doubt_of_channel_order(train, other, scaling);
  if (!doubt) doubt = doubt_of_range(train, other, config);
  if (!doubt) doubt = doubt_of_unit(train, other);
  if (!doubt) doubt = doubt_of_single_channels(train, other, scaling);
  return {doubt, doubt_of_repeats(train, other, config)};
}

}  // namespace lra::tasks
