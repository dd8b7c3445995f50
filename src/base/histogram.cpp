#include "base/histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lra {
namespace {

// Limits of magnitude 1e-12 to 1e20, as TensorBoard's own writers have them.
constexpr double kSmallest = 1e-12, kLargest = 1e20, kGrowth = 1.1;

std::vector<double> make_limits() {
  std::vector<double> positive;
  for (double limit = kSmallest; limit < kLargest; limit *= kGrowth) positive.push_back(limit);
  positive.push_back(std::numeric_limits<double>::max());
  std::vector<double> limits;
  for (auto i = positive.rbegin(); i != positive.rend(); ++i) limits.push_back(-*i);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

}  // namespace

Histogram histogram_of(std::span<const float> values) {
  static const std::vector<double> kLimits = make_limits();
  Histogram h;
  h.min = std::numeric_limits<double>::infinity();
  h.max = -h.min;
  std::vector<double> counts(kLimits.size());
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    h.min = std::min<double>(h.min, value);
    h.max = std::max<double>(h.max, value);
    h.count += 1;
    h.sum += value;
    h.sum_squares += static_cast<double>(value) * value;
    counts[static_cast<size_t>(std::upper_bound(kLimits.begin(), kLimits.end(), value) -
                               kLimits.begin())] += 1;
  }
  if (h.count == 0) return {};
  const auto is_used = [](double count) { return count > 0; };
  const auto last = std::find_if(counts.rbegin(), counts.rend(), is_used).base();
  auto first = std::find_if(counts.begin(), counts.end(), is_used);
  if (first != counts.begin()) --first;
  h.counts.assign(first, last);
  h.limits.assign(kLimits.begin() + (first - counts.begin()),
                  kLimits.begin() + (last - counts.begin()));
  return h;
}

}  // namespace lra
