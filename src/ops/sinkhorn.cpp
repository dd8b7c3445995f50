#include "ops/sinkhorn.h"

#include <cmath>

#include "base/parallel.h"
#include "base/rng.h"
#include "ops/composed.h"

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

Scalings iterate(const Tensor& logits, const Tensor& columns, const Tensor& valid_BN) {
  const auto log_sums = [&](const Tensor& x, int64_t axis) {
    const Tensor sums = x.logsumexp(axis, true);
    if (!valid_BN.defined()) return sums;
    return sums.masked_fill(valid_BN.unsqueeze(1).unsqueeze(axis).logical_not(), 0);
  };
  Scalings next;
  next.rows_BHN1 = log_sums(logits - columns, -1);
  next.columns_BH1N = log_sums(logits - next.rows_BHN1, -2);
  return next;
}

// Logits of which only pairs of valid blocks count.
Tensor hide_invalid(const Tensor& logits, const Tensor& valid_BN) {
  if (!valid_BN.defined()) return logits;
  const Tensor pairs = valid_BN.unsqueeze(-1).logical_and(valid_BN.unsqueeze(-2));
  return logits.masked_fill(pairs.unsqueeze(1).logical_not(), kHidden);
}

Tensor composed_sinkhorn(const Tensor& logits_in, const Tensor& valid_BN, int64_t iterations) {
  const Tensor logits = hide_invalid(logits_in, valid_BN);
  Scalings last = {{}, at::zeros({1, 1, 1, 1}, logits.options())};
  for (int64_t n = 0; n < iterations; ++n) last = iterate(logits, last.columns_BH1N, valid_BN);
  return (logits - last.rows_BHN1 - last.columns_BH1N).exp();
}

struct SinkhornFunction : torch::autograd::Function<SinkhornFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& logits_in, const MaybeTensor& valid,
                        int64_t iterations) {
    const Tensor valid_BN = tensor_or_empty(valid);
    const Tensor logits = hide_invalid(logits_in, valid_BN);
    variable_list saved = {logits_in, valid_BN};
    Tensor columns = at::zeros({1, 1, 1, 1}, logits.options());
    for (int64_t n = 0; n < iterations; ++n) {
      const Scalings next = iterate(logits, columns, valid_BN);
      columns = next.columns_BH1N;
      saved.insert(saved.end(), {next.rows_BHN1, columns});
    }
    ctx->save_for_backward(saved);
    return exp_or_zero_(logits - saved[saved.size() - 2] - columns);
  }

  // d log(sum over j of exp(x_ij)) / d x_ij is the matrix normalized along that axis, made again
  // from the vectors of each iteration.
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const size_t iterations = saved.size() / 2 - 1;
    if (at::GradMode::is_enabled()) {
      const auto matrix = [&](const auto& in) {
        return variable_list{composed_sinkhorn(in[0], in[1], static_cast<int64_t>(iterations))};
      };
      return composed_gradients("lra::sinkhorn", matrix, {saved[0], saved[1]}, grads, 3);
    }
    const Tensor logits = hide_invalid(saved[0], saved[1]);
    const auto normalised = [&](const Tensor& rows, const Tensor& columns) {
      return exp_or_zero_(logits - rows - columns);
    };
    Tensor grad = grads[0] * normalised(saved[2 * iterations], saved[2 * iterations + 1]);
    Tensor grad_rows = -grad.sum(-1, true), grad_columns = -grad.sum(-2, true);
    for (size_t n = iterations; n > 0; --n) {
      const Tensor &rows = saved[2 * n], &columns = saved[2 * n + 1];
      const Tensor by_columns = normalised(rows, columns).mul_(grad_columns);
      grad.add_(by_columns);
      grad_rows = grad_rows - by_columns.sum(-1, true);
      const Tensor before = n > 1 ? saved[2 * n - 1] : at::zeros_like(columns);
      const Tensor by_rows = normalised(rows, before).mul_(grad_rows);
      grad.add_(by_rows);
      grad_columns = -by_rows.sum(-2, true);
      grad_rows = at::zeros_like(rows);
    }
    return {grad, Tensor(), Tensor()};
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

Tensor sinkhorn(const Tensor& logits, const Tensor& valid_BN, int64_t iterations) {
  LRA_CHECK_EQ(logits.dim(), 4);
  LRA_CHECK_EQ(logits.size(2), logits.size(3));
  LRA_CHECK_GE(iterations, 1);
  LRA_CHECK(logits.scalar_type() != at::kBFloat16);  // logarithms of sums
  if (valid_BN.defined()) {
    LRA_CHECK(valid_BN.scalar_type() == at::kBool && valid_BN.dim() == 2);
    LRA_CHECK(valid_BN.size(0) == logits.size(0) && valid_BN.size(1) == logits.size(2));
  }
  return SinkhornFunction::apply(logits, optional_tensor(valid_BN), iterations);
}

TORCH_LIBRARY_FRAGMENT(lra, m) { m.def("gumbel_noise_like(Tensor logits, int key) -> Tensor"); }

TORCH_LIBRARY_IMPL(lra, CPU, m) { m.impl("gumbel_noise_like", gumbel_noise_impl); }

}  // namespace lra::ops
