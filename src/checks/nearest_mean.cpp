#include "checks/baseline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"

namespace lra::checks {
namespace {

// Calls act(example, its features) for each example in turn; they are read by all threads.
template <typename Act>
void for_each_example(const Split& split, const Features& features, const Act& act) {
  constexpr int64_t kAtOnce = 1024;
  const auto size = static_cast<size_t>(features.size);
  std::vector<float> read;
  for (int64_t first = 0; first < split.size(); first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, split.size() - first);
    read.assign(static_cast<size_t>(count) * size, 0);
    const auto row = [&](int64_t i) {
      return std::span(read).subspan(static_cast<size_t>(i) * size, size);
    };
    parallel_ranges(count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) features.read(split, first + i, row(i));
    });
    for (int64_t i = 0; i < count; ++i) act(first + i, row(i));
  }
}

struct ClassMeans {
  std::vector<double> means;    // [classes, F]
  std::vector<double> weights;  // [F], 1 / variance, or 0
  std::vector<int64_t> counts;  // [classes]
};

ClassMeans class_means(const Split& train, int64_t num_classes, const Features& features) {
  const auto size = static_cast<size_t>(features.size);
  ClassMeans found{.means = std::vector<double>(static_cast<size_t>(num_classes) * size),
                   .weights = std::vector<double>(size, 1),
                   .counts = std::vector<int64_t>(static_cast<size_t>(num_classes))};
  std::vector<double> sums(size), squares(size);
  for_each_example(train, features, [&](int64_t example, std::span<const float> x) {
    const auto label = static_cast<size_t>(train.label(example));
    ++found.counts.at(label);
    for (size_t f = 0; f < size; ++f) {
      found.means[label * size + f] += x[f];
      sums[f] += x[f];
      squares[f] += double{x[f]} * x[f];
    }
  });
  for (size_t k = 0; k < found.means.size(); ++k) {
    found.means[k] /= static_cast<double>(std::max<int64_t>(1, found.counts[k / size]));
  }
  const auto count = static_cast<double>(train.size());
  for (size_t f = 0; features.are_scaled && f < size; ++f) {
    const double variance = squares[f] / count - std::pow(sums[f] / count, 2);
    found.weights[f] = variance > 1e-9 ? 1 / variance : 0;
  }
  return found;
}

int32_t nearest(const ClassMeans& classes, std::span<const float> x) {
  int32_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < classes.counts.size(); ++c) {
    if (classes.counts[c] == 0) continue;
    double distance = 0;
    for (size_t f = 0; f < x.size(); ++f) {
      distance += classes.weights[f] * std::pow(x[f] - classes.means[c * x.size() + f], 2);
    }
    if (distance < least) best = static_cast<int32_t>(c);
    least = std::min(least, distance);
  }
  return best;
}

}  // namespace

Baseline nearest_mean_baseline(const Split& train, const Split& test, int64_t num_classes,
                               const Features& features) {
  Baseline result{.name = "nearest class mean", .accuracy = 0};
  if (train.size() == 0 || test.size() == 0) return result;
  const ClassMeans classes = class_means(train, num_classes, features);
  result.accuracy = share_right(test, [&](int64_t i) {
    std::vector<float> x(static_cast<size_t>(features.size));
    features.read(test, i, x);
    return nearest(classes, x);
  });
  return result;
}

}  // namespace lra::checks
