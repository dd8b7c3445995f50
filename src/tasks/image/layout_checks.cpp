#include "tasks/image/layout_checks.h"

#include <cmath>

#include "base/text_format.h"
#include "data/drawn_examples.h"
#include "tasks/image/cifar_files.h"
#include "tasks/split_shift.h"

namespace lra::tasks {
namespace {

constexpr int64_t kFewestPhotos = 1000, kMostPhotos = 5000;
constexpr size_t kSide = kCifarSide;

// Pearson's correlation of pixels that lie `right` and `down` apart, over all images.
double correlation_of_neighbors(const Split& split, size_t right, size_t down) {
  double count = 0, sum_a = 0, sum_b = 0, squares_a = 0, squares_b = 0, products = 0;
  for (int64_t i = 0; i < split.size(); ++i) {
    const std::span<const uint8_t> pixels = split.stored_bytes(i);
    int64_t sums[5] = {};
    for (size_t y = 0; y + down < kSide; ++y) {
      for (size_t x = 0; x + right < kSide; ++x) {
        const int64_t a = pixels[y * kSide + x];
        const int64_t b = pixels[(y + down) * kSide + x + right];
        sums[0] += a;
        sums[1] += b;
        sums[2] += a * a;
        sums[3] += b * b;
        sums[4] += a * b;
      }
    }
    count += static_cast<double>((kSide - down) * (kSide - right));
    sum_a += static_cast<double>(sums[0]);
    sum_b += static_cast<double>(sums[1]);
    squares_a += static_cast<double>(sums[2]);
    squares_b += static_cast<double>(sums[3]);
    products += static_cast<double>(sums[4]);
  }
  const double variance_a = squares_a - sum_a * sum_a / count;
  const double variance_b = squares_b - sum_b * sum_b / count;
  if (variance_a <= 0 || variance_b <= 0) return 0;
  return (products - sum_a * sum_b / count) / std::sqrt(variance_a * variance_b);
}

// The mean of the first rows (or columns) less that of the last, of each image.
Spread first_less_last(const Split& split, bool of_rows) {
  constexpr size_t kLines = kSide / 4;
  std::vector<double> differences;
  for (int64_t i = 0; i < split.size(); ++i) {
    const std::span<const uint8_t> pixels = split.stored_bytes(i);
    int64_t difference = 0;
    for (size_t line = 0; line < kLines; ++line) {
      for (size_t at = 0; at < kSide; ++at) {
        const size_t last = kSide - 1 - line;
        difference += of_rows ? pixels[line * kSide + at] - pixels[last * kSide + at]
                              : pixels[at * kSide + line] - pixels[at * kSide + last];
      }
    }
    differences.push_back(static_cast<double>(difference) / static_cast<double>(kLines * kSide));
  }
  return Spread::of(differences);
}

std::string doubt_of_order(const std::string& name, const Split& split) {
  constexpr double kLeastCorrelation = 0.8;
  const double across = correlation_of_neighbors(split, 1, 0);
  const double down = correlation_of_neighbors(split, 0, 1);
  if (across >= kLeastCorrelation && down >= kLeastCorrelation) return "";
  return "neighboring pixels of " + name + " have little in common (correlation " +
         fixed(across, 2) + " across, " + fixed(down, 2) +
         " down; of CIFAR-10 0.92): are pixels or colors in another order?";
}

std::string doubt_of_direction(const std::string& name, const Split& split) {
  const Spread top = first_less_last(split, true), left = first_less_last(split, false);
  if (top.mean > std::abs(left.mean)) return "";
  return "images of " + name + " are brighter at the top than at the bottom by " +
         fixed(top.mean, 1) + ", and at the left than at the right by " + fixed(left.mean, 1) +
         "; photographs have their sky at the top: are they transposed, inverted or upside down?";
}

}  // namespace

std::vector<std::string> doubts_of_layout(const Dataset& dataset) {
  std::vector<std::string> doubts;
  for (const char* name : {"train", "val", "test"}) {
    if (!dataset.has(name)) continue;
    const Split all = dataset.split(name);
    if (all.size() < kFewestPhotos) continue;
    const Split some = all.subset(drawn_examples(all.size(), kMostPhotos));
    std::string doubt = doubt_of_order(name, some);
    if (doubt.empty()) doubt = doubt_of_direction(name, some);
    if (!doubt.empty()) doubts.push_back(std::move(doubt));
  }
  return doubts;
}

}  // namespace lra::tasks
