#include "tasks/custom/value_doubts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <tuple>

#include "base/text_format.h"
#include "tasks/custom/channel_tally.h"
#include "tasks/custom/examples.h"
#include "tasks/custom/scaling.h"
#include "tasks/drawn_examples.h"
#include "tasks/split_checks.h"

namespace lra::tasks {
namespace {

// A split, and what its channels are like.
struct SplitValues {
  std::string name;
  int64_t size = 0;
  std::vector<ChannelTally> tally;
  std::vector<ChannelScale> scales;

  static SplitValues of(const Dataset& dataset, const std::string& name,
                        const CustomConfig& config) {
    const Split split = dataset.split(name);
    SplitValues values{.name = name, .size = split.size(), .tally = {}, .scales = {}};
    values.tally = tally_channels(split, config);
    values.scales = scales_of(split, values.tally, config);
    return values;
  }
};

// Fewer examples may differ by chance.
constexpr int64_t kFewestForRatio = 200;

// "1, 2, 3 and others" as far as they are few.
std::string listed(const std::vector<size_t>& numbers) {
  constexpr size_t kMost = 6;
  std::string list;
  for (size_t i = 0; i < std::min(numbers.size(), kMost); ++i) {
    list += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  }
  return list + (numbers.size() > kMost ? " ..." : "");
}

// The first channel with a value in the place of missing ones.
std::optional<std::string> doubt_of_marks(const SplitValues& values, const CustomConfig& config) {
  for (size_t c = 0; c < values.tally.size(); ++c) {
    if (!mark_of(values.tally[c])) continue;
    return doubt_of_mark(values.tally[c], values.name, of_channel(c, config.channels));
  }
  return std::nullopt;
}

// The distance of the logarithm of a ratio of two deviations from 0, in standard errors.
double errors_of_ratio(const ChannelScale& a, const ChannelScale& b) {
  const double error = std::hypot(a.relative_error, b.relative_error);
  return std::abs(std::log(a.deviation / b.deviation)) / std::max(error, 1e-9);
}

constexpr double kFewestErrorsOfRatio = 6;

// A sentence if most channels deviate otherwise than in train, or around another mean. Rare events
// may be missing from a channel of a small split.
std::optional<std::string> doubt_of_range(const SplitValues& train, const SplitValues& other,
                                          const CustomConfig& config) {
  constexpr double kMostTimes = 2, kMostTimesOfFew = 3.5, kMostApart = 2, kRounding = 1e-6;
  const bool are_few = std::min(train.size, other.size) < kFewestForRatio;
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
std::vector<size_t> independent(const std::vector<size_t>& channels, const Split& split,
                                const std::vector<ChannelScale>& scales) {
  constexpr int64_t kMostDrawn = 50;
  constexpr double kFollows = 0.9;  // correlation
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
std::optional<std::string> doubt_of_unit(const SplitValues& train, const SplitValues& other,
                                         const Split& split) {
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
    const double error = std::hypot(train.scales[c].relative_error, other.scales[c].relative_error);
    if (std::abs(ratio - common) <= kUnlike && error <= kMostError &&
        std::abs(ratio) > kFewestErrorsOfRatio * error) {
      alike.push_back(c);
    }
  }
  std::ranges::sort(alike);
  if (static_cast<double>(alike.size()) < kShare * static_cast<double>(ratios.size()) ||
      independent(alike, split, other.scales).size() < kFewestChannels) {
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
  const double ratio_error = std::hypot(a.relative_error, b.relative_error);
  return {.in_deviations = std::max(apart / b_deviation, log_ratio),
          .in_errors = std::max(apart / std::max(error, kLeastError * b_deviation),
                                log_ratio / std::max(ratio_error, kLeastError))};
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

// Of large splits the standard errors tell channels apart that differ by little.
std::optional<std::string> doubt_of_channel_order(const SplitValues& train,
                                                  const SplitValues& other,
                                                  const Scaling& scaling) {
  constexpr int64_t kFewest = 100;
  using D = ChannelDistance;
  if (std::min(train.size, other.size) < kFewest) return std::nullopt;
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
  constexpr int64_t kFewest = 100;
  using D = ChannelDistance;
  if (std::min(train.size, other.size) < kFewest) return std::nullopt;
  std::vector<size_t> changed;
  const size_t num_channels = train.scales.size();
  for (size_t c = 0; c < num_channels; ++c) {
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
  const double error = 0.5 / std::sqrt(static_cast<double>(other.size));
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

// Channels of one value in all splits, as sensors have that were not plugged in.
std::optional<std::string> doubt_of_constants(const std::vector<SplitValues>& splits,
                                              const Scaling& scaling, const CustomConfig& config) {
  if (config.channels == 1) return std::nullopt;  // equal examples, which are doubted as such
  const auto value_in = [](const SplitValues& split, size_t c) {
    return split.tally[c].lowest.value;
  };
  std::vector<size_t> constant;
  for (size_t c = 0; c < splits[0].tally.size(); ++c) {
    const bool varies = std::ranges::any_of(splits, [&](const SplitValues& split) {
      return split.tally[c].varies() || value_in(split, c) != value_in(splits[0], c);
    });
    if (!varies) constant.push_back(c);
  }
  if (constant.empty()) return std::nullopt;
  const double value = scaling.original(value_in(splits[0], constant[0]), constant[0]);
  if (constant.size() == 1) {
    return "all values in channel " + listed(constant) + " are " + short_number(value) +
           ": was its sensor off, or its file missing?";
  }
  return "channels " + listed(constant) + " never vary; all values of the first are " +
         short_number(value) + ": were their sensors off, or their files missing?";
}

// The correlation of numbers around 0 at a fixed distance.
struct Likeness {
  double products = 0, squares = 0;  // the mean of both squares

  void add(double a, double b) {
    products += a * b;
    squares += (a * a + b * b) / 2;
  }
  double value() const { return squares > 0 ? products / squares : 0; }
};

// The mean of each number over examples of one length.
std::vector<double> mean_example(const Split& split, const std::vector<int64_t>& examples,
                                 size_t size) {
  std::vector<double> means(size);
  std::vector<int32_t> words(size);
  for (const int64_t i : examples) {
    split.read_tokens(i, 0, words);
    for (size_t at = 0; at < size; ++at) {
      means[at] += std::bit_cast<float>(words[at]) / static_cast<double>(examples.size());
    }
  }
  return means;
}

// Time runs along the axis on which neighbors are alike, and numbers far apart less so. What all
// examples have in common, as the offset of each sensor, says nothing about it.
bool has_time_in_channels(const Split& train, const CustomConfig& config) {
  constexpr int64_t kMostDrawn = 500, kMostNumbers = 1 << 20;
  constexpr size_t kFewest = 8;
  constexpr double kAlike = 0.6, kUnlike = 0.2, kDecay = 0.5;
  const auto channels = static_cast<size_t>(config.channels);
  const auto length = static_cast<size_t>(config.longest);
  if (channels < kFewest || length < kFewest || train.size() < kFewestToJudge ||
      config.longest * config.channels > kMostNumbers) {
    return false;
  }
  const std::vector<int64_t> drawn = drawn_examples(train.size(), kMostDrawn);
  const std::vector<double> means = mean_example(train, drawn, length * channels);
  std::vector<int32_t> words(means.size());
  Likeness of_channels, of_far_channels, of_positions;
  std::vector<double> x(means.size());
  for (const int64_t i : drawn) {
    train.read_tokens(i, 0, words);
    for (size_t at = 0; at < x.size(); ++at) x[at] = std::bit_cast<float>(words[at]) - means[at];
    for (size_t at = 0; at < x.size(); ++at) {
      const size_t c = at % channels;
      if (c + 1 < channels) of_channels.add(x[at], x[at + 1]);
      if (c + channels / 2 < channels) of_far_channels.add(x[at], x[at + channels / 2]);
      if (at + channels < x.size()) of_positions.add(x[at], x[at + channels]);
    }
  }
  return of_channels.value() > kAlike && of_positions.value() < kUnlike &&
         of_far_channels.value() < kDecay * of_channels.value();
}

// Far more channels than positions, or channels in the order of time.
std::optional<std::string> doubt_of_axes(const Dataset& dataset, const CustomConfig& config) {
  constexpr int64_t kMostChannelsPerPosition = 4;
  constexpr int64_t kFewestInPicture = 8;
  if (config.shortest != config.longest) return std::nullopt;
  if (config.channels == config.longest && config.longest >= kFewestInPicture) {
    const std::string size = std::to_string(config.longest);
    return "sequences have " + size + " positions with " + size +
           " channels each: are they pictures? Reshape these to sequences of pixels, [N, H * W]";
  }
  if (config.channels <= kMostChannelsPerPosition * config.longest &&
      !has_time_in_channels(dataset.split("train"), config)) {
    return std::nullopt;
  }
  return "sequences have " + std::to_string(config.longest) + " positions with " +
         std::to_string(config.channels) +
         " channels each: is the array [N, C, L]? It is read as [N, L, C]; transpose it then";
}

// Channels in another order have other units as well.
std::vector<std::optional<std::string>> doubts_against_train(const SplitValues& train,
                                                             const SplitValues& other,
                                                             const Split& split,
                                                             const Scaling& scaling,
                                                             const CustomConfig& config) {
  std::optional<std::string> doubt = doubt_of_channel_order(train, other, scaling);
  if (!doubt) doubt = doubt_of_range(train, other, config);
  if (!doubt) doubt = doubt_of_unit(train, other, split);
  if (!doubt) doubt = doubt_of_single_channels(train, other, scaling);
  return {doubt, doubt_of_repeats(train, other, config)};
}

}  // namespace

std::vector<std::string> doubts_of_values(const Dataset& dataset, const CustomConfig& config) {
  const Scaling scaling = scaling_of(dataset);
  std::vector<std::optional<std::string>> doubts = {doubt_of_axes(dataset, config)};
  std::vector<SplitValues> judged;  // without splits that are too small
  for (const char* name : {"train", "val", "test"}) {
    if (dataset.split(name).size() < kFewestToJudge) continue;
    judged.push_back(SplitValues::of(dataset, name, config));
    doubts.push_back(doubt_of_marks(judged.back(), config));
    if (judged.size() == 1 || judged[0].name != "train") continue;
    std::ranges::move(
        doubts_against_train(judged[0], judged.back(), dataset.split(name), scaling, config),
        std::back_inserter(doubts));
  }
  if (!judged.empty()) doubts.push_back(doubt_of_constants(judged, scaling, config));
  std::vector<std::string> found;
  for (auto& doubt : doubts) {
    if (doubt) found.push_back(std::move(*doubt));
  }
  return found;
}

}  // namespace lra::tasks
