// Mean, spread and intervals of the few figures that several seeds give.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lra::report {

struct Summary {
  int count = 0;
  double mean = 0;                     // 0 when count is 0
  std::optional<double> deviation;     // sample standard deviation (n - 1); from two values on
  std::optional<double> half_width95;  // of the 95 % interval of the mean (Student's t)
};

Summary summarize(std::span<const double> values);

// The value that Student's t with `degrees` >= 1 degrees of freedom exceeds with probability
// 0.025; within 0.005 of the exact one.
double t_quantile(int degrees);

// Half-width of the 95 % interval of an accuracy in percent measured on `num_examples` > 0
// examples (the farther end of Wilson's interval, so not 0 for 0 and 100 %).
double binomial_half_width95(double accuracy_percent, int64_t num_examples);

// Two-sided p-value of Student's t with `degrees` >= 1 degrees of freedom.
double t_test_p(double t, int degrees);
// Exact two-sided McNemar test of two classifiers on the same examples: how many only the first
// predicted right, and only the second. 1 if there are none.
double mcnemar_p(int64_t only_first, int64_t only_second);
// The p-values adjusted for their number (Holm 1979), in their order.
std::vector<double> holm_adjusted(const std::vector<double>& p_values);

}  // namespace lra::report
