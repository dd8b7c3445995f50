#include "ops/sinkhorn.h"

#include <cmath>

#include "base/parallel.h"
#include "base/rng.h"
#include "ops/fused_function.h"

namespace lra::ops {
namespace {

// Far below every logit, yet finite: exp of it is exactly 0, and differences of it are not NaN.
constexpr double kHidden = -1e30;

// Rows and columns sum to one, so smaller numbers add nothing to them and are set to 0. Subnormal
// numbers cost Intel processors about a hundred cycles in every product.
constexpr double kLeastLog = -80, kLeast = 2e-35;  // e^-80 = 1.8e-35

// exp(x), in the place of x.
Tensor exp_or_zero_(Tensor x) { return at::threshold_(x.clamp_min_(kLeastLog).exp_(), kLeast, 0); }

// The normalized matrix is exp(logits - rows_i - columns_j): an iteration changes two vectors.
struct Scalings {
  Tensor rows_BHN1, columns_BH1N;
};

Scalings iterate(const Tensor& logits, const Tensor& columns, const MaybeTensor& valid_BN) {
  const auto log_sums = [&](const Tensor& x, int64_t axis) {
    const Tensor sums = x.logsumexp(axis, true);
    if (!valid_BN) return sums;
    return sums.masked_fill(valid_BN->unsqueeze(1).unsqueeze(axis).logical_not(), 0);
  };
  Scalings next;
  next.rows_BHN1 = log_sums(logits - columns, -1);
  next.columns_BH1N = log_sums(logits - next.rows_BHN1, -2);
  return next;
}

// Logits of which only pairs of valid blocks count.
Tensor hide_invalid(const Tensor& logits, const MaybeTensor& valid_BN) {
  if (!valid_BN) return logits;
  const Tensor pairs = valid_BN->unsqueeze(-1).logical_and(valid_BN->unsqueeze(-2));
  return logits.masked_fill(pairs.unsqueeze(1).logical_not(), kHidden);
}

Tensor composed_sinkhorn(const Tensor& logits_in, const MaybeTensor& valid, int64_t iterations) {
  const Tensor logits = hide_invalid(logits_in.contiguous(), valid);
  Scalings last = {{}, at::zeros({1, 1, 1, 1}, logits.options())};
  for (int64_t n = 0; n < iterations; ++n) last = iterate(logits, last.columns_BH1N, valid);
  return (logits - last.rows_BHN1 - last.columns_BH1N).exp();
}

// The matrix, and rows and columns of all iterations [iterations, 2, B, H, N].
std::tuple<Tensor, Tensor> sinkhorn_forward(const Tensor& logits_in, const MaybeTensor& valid,
                                            int64_t iterations) {
  check_sinkhorn(logits_in, valid, iterations);
  const Tensor logits = hide_invalid(logits_in.contiguous(), valid);
  variable_list scalings;
  Scalings last = {{}, at::zeros({1, 1, 1, 1}, logits.options())};
  for (int64_t n = 0; n < iterations; ++n) {
    last = iterate(logits, last.columns_BH1N, valid);
    scalings.push_back(at::stack({last.rows_BHN1.squeeze(-1), last.columns_BH1N.squeeze(-2)}));
  }
  return {exp_or_zero_(logits - last.rows_BHN1 - last.columns_BH1N), at::stack(scalings)};
}

// d log(sum over j of exp(x_ij)) / d x_ij is the matrix normalized along that axis, made again from
// the vectors of each iteration.
Tensor sinkhorn_backward(const Tensor& grad_in, const Tensor& logits_in, const MaybeTensor& valid,
                         const Tensor& scalings) {
  const Tensor logits = hide_invalid(logits_in.contiguous(), valid);
  const auto rows_of = [&](int64_t n) { return scalings[n][0].unsqueeze(-1); };
  const auto columns_of = [&](int64_t n) { return scalings[n][1].unsqueeze(-2); };
  const auto normalised = [&](const Tensor& rows, const Tensor& columns) {
    return exp_or_zero_(logits - rows - columns);
  };
  const int64_t last = scalings.size(0) - 1;
  Tensor grad = grad_in * normalised(rows_of(last), columns_of(last));
  Tensor grad_rows = -grad.sum(-1, true), grad_columns = -grad.sum(-2, true);
  for (int64_t n = last; n >= 0; --n) {
    const Tensor rows = rows_of(n), columns = columns_of(n);
    const Tensor by_columns = normalised(rows, columns).mul_(grad_columns);
    grad.add_(by_columns);
    grad_rows = grad_rows - by_columns.sum(-1, true);
    const Tensor before = n > 0 ? columns_of(n - 1) : at::zeros_like(columns);
    const Tensor by_rows = normalised(rows, before).mul_(grad_rows);
    grad.add_(by_rows);
    grad_columns = -by_rows.sum(-2, true);
    grad_rows = at::zeros_like(rows);
  }
  return grad;
}

Tensor normalized(const Tensor& logits, const MaybeTensor& valid, int64_t iterations) {
  return std::get<0>(
      dispatch<"lra::sinkhorn_forward", sinkhorn_forward>(logits, valid, iterations));
}

struct SinkhornFunction : FusedFunction<SinkhornFunction, composed_sinkhorn> {
  static constexpr const char* kName = "lra::sinkhorn";
  static constexpr size_t kMask = 1;

  static auto fused(const Tensor& logits, const MaybeTensor& valid, int64_t iterations) {
    return dispatch<"lra::sinkhorn_forward", sinkhorn_forward>(logits, valid, iterations);
  }
  static Tensor gradients(const Tensor& grad, const variable_list& kept, const Tensor& logits,
                          const MaybeTensor& valid, int64_t) {
    return dispatch<"lra::sinkhorn_backward", sinkhorn_backward>(grad, logits, valid, kept[0]);
  }
};

Tensor gumbel_noise_impl(const Tensor& logits, int64_t key) {
  LRA_CHECK(logits.dim() == 4 && logits.size(2) == logits.size(3));
  LRA_CHECK(logits.scalar_type() != at::kBFloat16);
  Tensor noise = at::empty(logits.sizes(), logits.options());
  const int64_t blocks = logits.size(2);
  with_float_type(noise, "lra::gumbel_noise_like", [&]<typename T>(T) {
    T* data = mutable_data<T>(noise);
    parallel_for_each(logits.size(0) * logits.size(1), [&](int64_t plane) {
      for (int64_t n = 0; n < blocks; ++n) {
        RandomStream stream(static_cast<uint64_t>(key), static_cast<uint32_t>(plane),
                            static_cast<uint32_t>(n));
        T* row = data + (plane * blocks + n) * blocks;
        for (int64_t l = 0; l < blocks; ++l) {
          const double uniform = (stream.next_u32() + 0.5) * 0x1p-32;
          row[l] = T(-std::log(-std::log(uniform)));
        }
      }
    });
  });
  return noise;
}

}  // namespace

Tensor gumbel_noise_like(const Tensor& logits, uint64_t key) {
  return dispatch<"lra::gumbel_noise_like", gumbel_noise_impl>(logits.detach(),
                                                               static_cast<int64_t>(key));
}

void check_sinkhorn(const Tensor& logits, const MaybeTensor& valid_BN, int64_t iterations) {
  LRA_CHECK_EQ(logits.dim(), 4);
  LRA_CHECK_EQ(logits.size(2), logits.size(3));
  LRA_CHECK_GE(iterations, 1);
  LRA_CHECK(logits.scalar_type() != at::kBFloat16);  // logarithms of sums
  if (!valid_BN) return;
  LRA_CHECK(valid_BN->scalar_type() == at::kBool && valid_BN->dim() == 2);
  LRA_CHECK(valid_BN->size(0) == logits.size(0) && valid_BN->size(1) == logits.size(2));
}

Tensor sinkhorn(const Tensor& logits, const Tensor& valid_BN, int64_t iterations) {
  return dispatch<"lra::sinkhorn", normalized>(logits, optional_tensor(valid_BN), iterations);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("gumbel_noise_like(Tensor logits, int key) -> Tensor");
  m.def("sinkhorn(Tensor logits, Tensor? valid, int iterations) -> Tensor");
  m.def("sinkhorn_forward(Tensor logits, Tensor? valid, int iterations) -> (Tensor, Tensor)");
  m.def("sinkhorn_backward(Tensor grad, Tensor logits, Tensor? valid, Tensor scalings) -> Tensor");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) { m.impl("gumbel_noise_like", gumbel_noise_impl); }

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) {
  m.impl("sinkhorn", normalized);
  m.impl("sinkhorn_forward", sinkhorn_forward);
  m.impl("sinkhorn_backward", sinkhorn_backward);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) { m.impl("sinkhorn", applies<SinkhornFunction>(normalized)); }

}  // namespace lra::ops
