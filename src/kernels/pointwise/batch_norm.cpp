#include "kernels/pointwise/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "base/parallel.h"

namespace lra::kernels {
namespace {

template <typename T>
BatchNormPasses<T> choose_passes() {
  LRA_RETURN_BEST(T, Op::kBatchNorm, batch_norm_passes<T>());
}

// Calls body(slice, begin, end) for each slice of rows.
template <typename F>
void for_each_slice(int64_t rows, const F& body) {
  parallel_for_each((rows + kBatchNormRows - 1) / kBatchNormRows, [&](int64_t slice) {
    body(slice, slice * kBatchNormRows, std::min(rows, (slice + 1) * kBatchNormRows));
  });
}

// Two arrays [columns] of each slice of rows.
template <typename W>
class SliceSums {
 public:
  SliceSums(int64_t rows, int64_t columns)
      : columns_(columns),
        num_slices_((rows + kBatchNormRows - 1) / kBatchNormRows),
        values_(
            std::make_unique_for_overwrite<W[]>(static_cast<size_t>(num_slices_ * 2 * columns))) {}
  W* first(int64_t slice) const { return values_.get() + slice * 2 * columns_; }
  W* second(int64_t slice) const { return first(slice) + columns_; }
  int64_t num_slices() const { return num_slices_; }

 private:
  int64_t columns_, num_slices_;
  std::unique_ptr<W[]> values_;
};

double rstd_of(double variance, double eps) { return 1 / std::sqrt(variance + eps); }

}  // namespace

template <typename T>
int64_t batch_norm_forward(const BatchNormForward<T>& p) {
  using W = Wide<T>;
  const BatchNormPasses<T> passes = choose_passes<T>();
  const SliceSums<W> of(p.rows, p.columns);  // means, and squared deviations from them
  std::vector<int64_t> counts(static_cast<size_t>(of.num_slices()));
  for_each_slice(p.rows, [&](int64_t slice, int64_t begin, int64_t end) {
    counts[static_cast<size_t>(slice)] =
        passes.moments(p, begin, end, of.first(slice), of.second(slice));
  });
  const int64_t count = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto total = static_cast<double>(std::max<int64_t>(1, count));
  std::vector<double> mean(static_cast<size_t>(p.columns)), squares(mean.size());
  for (int64_t slice = 0; slice < of.num_slices(); ++slice) {
    const double share = static_cast<double>(counts[static_cast<size_t>(slice)]) / total;
    for (size_t c = 0; c < mean.size(); ++c) mean[c] += share * double{of.first(slice)[c]};
  }
  for (int64_t slice = 0; slice < of.num_slices(); ++slice) {
    const auto size = static_cast<double>(counts[static_cast<size_t>(slice)]);
    for (size_t c = 0; c < mean.size(); ++c) {
      const double away = double{of.first(slice)[c]} - mean[c];
      squares[c] += double{of.second(slice)[c]} + size * away * away;
    }
  }
  std::vector<W> slope(mean.size());
  for (size_t c = 0; c < mean.size(); ++c) {
    p.mean[c] = static_cast<W>(mean[c]);
    p.variance[c] = static_cast<W>(squares[c] / total);
    slope[c] = static_cast<W>(rstd_of(double{p.variance[c]}, p.eps) * double{p.gamma[c]});
  }
  for_each_slice(p.rows, [&](int64_t, int64_t begin, int64_t end) {
    passes.forward(p, begin, end, slope.data());
  });
  return count;
}

template <typename T>
void batch_norm_backward(const BatchNormBackward<T>& p) {
  using W = Wide<T>;
  const BatchNormPasses<T> passes = choose_passes<T>();
  const SliceSums<W> of(p.rows, p.columns);
  for_each_slice(p.rows, [&](int64_t slice, int64_t begin, int64_t end) {
    passes.sums(p, begin, end, of.first(slice), of.second(slice));
  });
  const auto columns = static_cast<size_t>(p.columns);
  std::vector<double> products(columns), sums(columns);
  for (int64_t slice = 0; slice < of.num_slices(); ++slice) {
    for (size_t c = 0; c < columns; ++c) {
      products[c] += double{of.first(slice)[c]};
      sums[c] += double{of.second(slice)[c]};
    }
  }
  const auto total = static_cast<double>(std::max<int64_t>(1, p.count));
  std::vector<W> of_grad(columns), of_x(columns), constant(columns);
  for (size_t c = 0; c < columns; ++c) {
    const double rstd = rstd_of(double{p.variance[c]}, p.eps), slope = rstd * double{p.gamma[c]};
    p.grad_gamma[c] = static_cast<W>(products[c] * rstd);
    p.grad_beta[c] = static_cast<W>(sums[c]);
    of_grad[c] = static_cast<W>(slope);
    of_x[c] = static_cast<W>(-slope * rstd * rstd * products[c] / total);
    constant[c] = static_cast<W>(-slope * sums[c] / total);
  }
  for_each_slice(p.rows, [&](int64_t, int64_t begin, int64_t end) {
    passes.backward(p, begin, end, of_grad.data(), of_x.data(), constant.data());
  });
}

template int64_t batch_norm_forward(const BatchNormForward<float>&);
template int64_t batch_norm_forward(const BatchNormForward<Bf16>&);
template int64_t batch_norm_forward(const BatchNormForward<double>&);
template void batch_norm_backward(const BatchNormBackward<float>&);
template void batch_norm_backward(const BatchNormBackward<Bf16>&);
template void batch_norm_backward(const BatchNormBackward<double>&);

}  // namespace lra::kernels
