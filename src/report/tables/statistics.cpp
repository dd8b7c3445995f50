#include "report/tables/statistics.h"

#include <cmath>
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

}  // namespace lra::report
