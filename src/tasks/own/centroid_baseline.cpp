#include "tasks/own/centroid_baseline.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/parallel.h"

namespace lra::tasks {
namespace {

constexpr int64_t kCounts = 512, kWindows = 64;

// Features of every example, [N, F].
class Features {
 public:
  Features(const Split& split, const CustomConfig& config)
      : config_(config),
        per_tower_(config.input == "values" ? config.channels * std::min(kWindows, config.length)
                                            : kCounts),
        size(config.towers * per_tower_),
        values(static_cast<size_t>(split.size() * size)) {
    parallel_ranges(split.size(), 64, [&](int64_t begin, int64_t end) {
      std::vector<int32_t> words;
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t tower = 0; tower < config.towers; ++tower) {
          const int64_t stored = std::min(split.sequence_length(i, tower), config.length);
          words.resize(static_cast<size_t>(stored * split.words_per_token()));
          split.read_tokens(i, tower, words);
          const std::span<float> to = of(i).subspan(static_cast<size_t>(tower * per_tower_),
                                                    static_cast<size_t>(per_tower_));
          config.input == "values" ? average(words, to) : count(words, to);
        }
      }
    });
  }

  std::span<float> of(int64_t example) {
    return std::span(values).subspan(static_cast<size_t>(example * size),
                                     static_cast<size_t>(size));
  }

 private:
  static void count(std::span<const int32_t> ids, std::span<float> to) {
    for (const int32_t id : ids) ++to[static_cast<size_t>(id % kCounts)];
    for (float& value : to) value = std::log1p(value);
  }

  void average(std::span<const int32_t> words, std::span<float> to) const {
    const auto channels = static_cast<size_t>(config_.channels);
    const size_t length = words.size() / channels, windows = to.size() / channels;
    for (size_t w = 0; w < windows; ++w) {
      const size_t begin = w * length / windows;
      const size_t end = std::max(std::min(begin + 1, length), (w + 1) * length / windows);
      for (size_t at = begin; at < end; ++at) {
        for (size_t c = 0; c < channels; ++c) {
          to[w * channels + c] +=
              std::bit_cast<float>(words[at * channels + c]) / static_cast<float>(end - begin);
        }
      }
    }
  }

  const CustomConfig& config_;
  int64_t per_tower_;

 public:
  int64_t size;
  std::vector<float> values;
};

struct Centroids {
  std::vector<double> means;    // [classes, F]
  std::vector<double> weights;  // [F], 1 / variance, or 0
  std::vector<int64_t> counts;  // [classes]
};

Centroids centroids_of(Features& features, const Split& train, int64_t classes) {
  const auto size = static_cast<size_t>(features.size);
  Centroids found{.means = std::vector<double>(static_cast<size_t>(classes) * size),
                  .weights = std::vector<double>(size),
                  .counts = std::vector<int64_t>(static_cast<size_t>(classes))};
  std::vector<double> sums(size), squares(size);
  for (int64_t i = 0; i < train.size(); ++i) {
    const auto label = static_cast<size_t>(train.label(i));
    ++found.counts[label];
    const std::span<const float> x = features.of(i);
    for (size_t f = 0; f < size; ++f) {
      found.means[label * size + f] += x[f];
      sums[f] += x[f];
      squares[f] += double{x[f]} * x[f];
    }
  }
  for (size_t k = 0; k < found.means.size(); ++k) {
    found.means[k] /= static_cast<double>(std::max<int64_t>(1, found.counts[k / size]));
  }
  const auto count = static_cast<double>(train.size());
  for (size_t f = 0; f < size; ++f) {
    const double variance = squares[f] / count - std::pow(sums[f] / count, 2);
    found.weights[f] = variance > 1e-9 ? 1 / variance : 0;
  }
  return found;
}

int32_t nearest(const Centroids& centroids, std::span<const float> x) {
  int32_t best = 0;
  double least = INFINITY;
  for (size_t c = 0; c < centroids.counts.size(); ++c) {
    if (centroids.counts[c] == 0) continue;
    double distance = 0;
    for (size_t f = 0; f < x.size(); ++f) {
      distance += centroids.weights[f] * std::pow(x[f] - centroids.means[c * x.size() + f], 2);
    }
    if (distance < least) best = static_cast<int32_t>(c);
    least = std::min(least, distance);
  }
  return best;
}

}  // namespace

checks::Baseline centroid_baseline(const Split& train, const Split& test,
                                   const CustomConfig& config) {
  checks::Baseline result{
      .name = config.input == "values" ? "nearest class mean" : "nearest class mean of counts",
      .accuracy = 0};
  if (train.size() == 0 || test.size() == 0) return result;
  Features train_x(train, config), test_x(test, config);
  const Centroids centroids = centroids_of(train_x, train, config.classes);
  std::vector<uint8_t> is_right(static_cast<size_t>(test.size()));
  parallel_ranges(test.size(), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      is_right[static_cast<size_t>(i)] = nearest(centroids, test_x.of(i)) == test.label(i);
    }
  });
  result.accuracy =
      static_cast<double>(std::ranges::count(is_right, 1)) / static_cast<double>(test.size());
  return result;
}

}  // namespace lra::tasks
