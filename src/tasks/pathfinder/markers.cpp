#include "tasks/pathfinder/markers.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "base/text_format.h"

namespace lra::tasks {
namespace {

constexpr int kBins = 36;  // 24 per side of the image; a diagonal has 34
constexpr int64_t kEnoughImages = 10000;

using Bins = std::array<std::array<int64_t, 2>, kBins>;  // images by distance and label

// Distance bin of every image; -1 for one that has another number of pixels.
std::vector<int> distance_bins(const Split& split, int size) {
  return parallel_map(split.size(), 64, [&](int64_t i) {
    const std::span<const uint8_t> pixels = split.stored_bytes(i);
    if (static_cast<int64_t>(pixels.size()) != int64_t{size} * size) return -1;
    const auto [first, second] = find_markers(pixels, size);
    const Point apart = first - second;
    return static_cast<int>(std::hypot(apart.y, apart.x) * 24 / size);
  });
}

Bins count_labels(const Split& split, int size) {
  Bins bins{};
  const std::vector<int> distances = distance_bins(split, size);
  for (int64_t i = 0; i < split.size(); ++i) {
    const int bin = distances[static_cast<size_t>(i)];
    if (bin >= 0) ++bins.at(static_cast<size_t>(bin))[split.label(i) == 1];
  }
  return bins;
}

}  // namespace

std::array<Point, 2> find_markers(std::span<const uint8_t> pixels, int size) {
  // A disc holds a square of bright pixels; dashes are too thin for it. The discs lie a quarter of
  // a pixel up and left of their centres, so the square does too.
  const double radius = pathfinder_geometry(size).marker_radius;
  const int half = std::max(1, static_cast<int>(radius * 0.7));
  std::array<Point, 2> centres;
  for (size_t which = 0; which < 2; ++which) {
    int best = -1;
    for (int y = half; y + half <= size; ++y) {
      for (int x = half; x + half <= size; ++x) {
        const Point apart = Point{y, x} - centres[0];
        if (which == 1 && std::max(std::abs(apart.y), std::abs(apart.x)) <= radius) continue;
        if (pixels[static_cast<size_t>(y * size + x)] <= best) continue;
        const ptrdiff_t width = ptrdiff_t{2} * half;
        int darkest = 255;
        for (int row = y - half; row < y + half && darkest > best; ++row) {
          const uint8_t* begin = &pixels[static_cast<size_t>(row * size + x - half)];
          darkest = std::min<int>(darkest, *std::min_element(begin, begin + width));
        }
        if (darkest <= best) continue;
        best = darkest;
        centres[which] = {y, x};
      }
    }
  }
  return centres;
}

checks::Baseline marker_distance_baseline(const Split& train, const Split& test, int size) {
  const Bins seen = count_labels(train, size), asked = count_labels(test, size);
  int64_t num_right = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    num_right += asked[bin][seen[bin][1] > seen[bin][0]];
  }
  return {.name = "marker distance",
          .accuracy = static_cast<double>(num_right) /
                      static_cast<double>(std::max<int64_t>(1, test.size()))};
}

checks::Fact marker_distance_fact(const Split& train, int size) {
  const Bins bins = count_labels(train, size);
  std::array<double, 2> totals{};
  for (const auto& counts : bins) {
    for (size_t label = 0; label < 2; ++label) totals[label] += static_cast<double>(counts[label]);
  }
  const double all = totals[0] + totals[1];
  double chi_square = 0;
  int freedom = -1;
  for (const auto& counts : bins) {
    const auto in_bin = static_cast<double>(counts[0] + counts[1]);
    if (in_bin < 10 || totals[0] == 0 || totals[1] == 0) continue;
    ++freedom;
    for (size_t label = 0; label < 2; ++label) {
      const double expected = in_bin * totals[label] / all;
      chi_square += std::pow(static_cast<double>(counts[label]) - expected, 2) / expected;
    }
  }
  // Four standard deviations above what chance gives.
  const bool dependent = freedom > 0 && chi_square > freedom + 4 * std::sqrt(2.0 * freedom);
  checks::Fact fact{.name = "labels and marker distance",
                    .value = "chi-square " + fixed(chi_square, 1) + ", " +
                             std::to_string(std::max(0, freedom)) + " degrees of freedom",
                    .ok = dependent || train.size() < kEnoughImages,
                    .detail = dependent ? "labels depend on the images" : "too few images to tell"};
  if (!fact.ok) {
    fact.detail = "labels have nothing to do with the images, so nothing can be learned";
    // The archive holds this size twice.
    if (size == 128) {
      fact.detail +=
          "; of the archive's two pathfinder128 folders take the inner one, "
          "lra_release/lra_release/pathfinder128";
    }
  }
  return fact;
}

}  // namespace lra::tasks
