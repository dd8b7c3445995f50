#include "report/tables/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"

namespace lra::report {

Summary summarize(std::span<const double> values) {
  Summary summary;
  summary.count = static_cast<int>(values.size());
  if (values.empty()) return summary;
  const auto count = static_cast<double>(values.size());
  summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2) return summary;
  double squares = 0;
  for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
  summary.deviation = std::sqrt(squares / (count - 1));
  summary.half_width95 = t_quantile(summary.count - 1) * *summary.deviation / std::sqrt(count);
  return summary;
}

double t_quantile(int degrees) {
  LRA_CHECK_GE(degrees, 1);
  static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                      2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                      2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                      2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees <= 30) return kTable[degrees - 1];
  // First terms of the expansion around the normal quantile z: z + (z^3 + z) / (4 degrees).
  return 1.95996 + 2.37227 / degrees;
}

double binomial_half_width95(double accuracy_percent, int64_t num_examples) {
  LRA_CHECK_GT(num_examples, 0);
  constexpr double kZ = 1.95996;
  const double p = accuracy_percent / 100, n = static_cast<double>(num_examples);
  const double center = (p + kZ * kZ / (2 * n)) / (1 + kZ * kZ / n);
  const double half = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n)) / (1 + kZ * kZ / n);
  return 100 * (half + std::abs(center - p));
}

// Abramowitz and Stegun 26.7.3 and 26.7.4: finite sums for whole degrees of freedom.
double t_test_p(double t, int degrees) {
  LRA_CHECK_GE(degrees, 1);
  const double angle = std::atan(std::abs(t) / std::sqrt(degrees));
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool is_odd = degrees % 2 == 1;
  double term = is_odd ? cosine : 1, sum = 0;
  for (int power = is_odd ? 1 : 0; power <= degrees - 2; power += 2) {
    sum += term;
    term *= cosine * cosine * (power + 1) / (power + 2);
  }
  const double inside = is_odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
  return std::clamp(1 - inside, 0.0, 1.0);
}

double mcnemar_p(int64_t only_first, int64_t only_second) {
  const auto n = static_cast<double>(only_first + only_second);
  const int64_t fewer = std::min(only_first, only_second);
  double tail = 0;
  for (int64_t k = 0; k <= fewer; ++k) {
    const auto count = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(count + 1) - std::lgamma(n - count + 1) -
                     n * std::numbers::ln2);
  }
  return std::min(1.0, 2 * tail);
}

std::vector<double> holm_adjusted(const std::vector<double>& p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p_values[i]; });
  std::vector<double> adjusted(p_values.size());
  double least = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    const auto remaining = static_cast<double>(order.size() - place);
    least = std::max(least, std::min(1.0, remaining * p_values[order[place]]));
    adjusted[order[place]] = least;
  }
  return adjusted;
}

}  // namespace lra::report
