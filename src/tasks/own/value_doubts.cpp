#include "tasks/own/value_doubts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "base/text_format.h"
#include "data/drawn_examples.h"
#include "data/scaling.h"
#include "tasks/own/channel_shift.h"
#include "tasks/split_checks.h"

namespace lra::tasks {
namespace {

// The first channel with a value in the place of missing ones.
std::optional<std::string> doubt_of_marks(const SplitValues& values, const CustomConfig& config) {
  for (size_t c = 0; c < values.tally.size(); ++c) {
    if (!mark_of(values.tally[c])) continue;
    return doubt_of_mark(values.tally[c], values.name, of_channel(c, config.channels));
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
  constexpr double kAlike = 0.15, kUnlike = 0.3, kDecay = 0.5;
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
  return of_channels.value() > kAlike && of_positions.value() < kUnlike * of_channels.value() &&
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
    std::ranges::move(doubts_of_channels(judged[0], judged.back(), scaling, config),
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
