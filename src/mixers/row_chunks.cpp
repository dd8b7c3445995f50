#include "mixers/row_chunks.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "layers/on_device.h"
#include "ops/precision.h"

namespace lra::mixers {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Plan : torch::CustomClassHolder {
  RowFunction f;
  int64_t num_row_tensors = 0, chunk = 0, length = 0;

  struct Inputs {
    std::vector<Tensor> rows, whole;
  };
  // The inputs for output rows [first, first + count).
  Inputs inputs(at::TensorList all, int64_t first, int64_t count) const {
    Inputs in;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_rows = static_cast<int64_t>(i) < num_row_tensors;
      (is_rows ? in.rows : in.whole).push_back(is_rows ? all[i].narrow(1, first, count) : all[i]);
    }
    return in;
  }
  template <typename Visit>
  void for_chunks(Visit visit) const {
    for (int64_t first = 0; first < length; first += chunk) {
      visit(first, std::min(chunk, length - first));
    }
  }
};

// Adds the gradients of one chunk to `gradients`, which are in the order of `all`.
void add_gradients(const Plan& plan, const variable_list& all, const Tensor& grad, int64_t first,
                   int64_t count, variable_list& gradients) {
  variable_list leaves;
  const Plan::Inputs parts = plan.inputs(all, first, count);
  for (const auto* list : {&parts.rows, &parts.whole}) {
    for (const Tensor& t : *list) leaves.push_back(t.detach().set_requires_grad(true));
  }
  const at::AutoGradMode with_gradients(true);
  const auto split = leaves.begin() + plan.num_row_tensors;
  const Tensor out = plan.f({leaves.begin(), split}, {split, leaves.end()}, first);
  const auto of_chunk = torch::autograd::grad({out}, leaves, {grad.narrow(1, first, count)});
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_rows = static_cast<int64_t>(i) < plan.num_row_tensors;
    (is_rows ? gradients[i].narrow(1, first, count) : gradients[i]).add_(of_chunk[i]);
  }
}

struct RowChunksFunction : torch::autograd::Function<RowChunksFunction> {
  static Tensor forward(AutogradContext* ctx, at::TensorList all,
                        const c10::intrusive_ptr<Plan>& plan) {
    std::vector<Tensor> outputs;
    plan->for_chunks([&](int64_t first, int64_t count) {
      const Plan::Inputs in = plan->inputs(all, first, count);
      outputs.push_back(plan->f(in.rows, in.whole, first));
    });
    ctx->save_for_backward(all.vec());
    ctx->saved_data["plan"] = c10::IValue::make_capsule(plan);
    return at::cat(outputs, 1);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list all = ctx->get_saved_variables();
    const auto capsule = ctx->saved_data["plan"].toCapsule();
    const auto& plan = static_cast<const Plan&>(*capsule);
    variable_list gradients;
    // Sums over chunks.
    for (const Tensor& t : all) {
      gradients.push_back(at::zeros_like(t, t.options().dtype(ops::wide_type(t))));
    }
    plan.for_chunks([&](int64_t first, int64_t count) {
      add_gradients(plan, all, grads[0], first, count, gradients);
    });
    for (size_t i = 0; i < all.size(); ++i) gradients[i] = ops::beside(gradients[i], all[i]);
    gradients.emplace_back();  // of the plan
    return gradients;
  }
};

// One row of factors. A Philox block serves eight columns, 16 apart: base/rng.h.
void dropout_row(std::span<float> row, uint32_t plane, uint32_t index,
                 const ops::AttentionDropout& dropout) {
  const uint32_t threshold = dropout_threshold(dropout.rate);
  const float kept = dropout_scale(dropout.rate);
  for (size_t group = 0; group < row.size(); group += 128) {
    for (size_t lane = 0; lane < 16; ++lane) {
      const auto counter = static_cast<uint32_t>(group / 128 * 16 + lane);
      const PhiloxBlock block = philox4x32({counter, index, plane, 0}, dropout.key);
      for (size_t n = 0; n < 8; ++n) {
        const size_t column = group + n * 16 + lane;
        if (column >= row.size()) break;
        const uint32_t value = n % 2 == 0 ? block[n / 2] & 0xFFFF : block[n / 2] >> 16;
        row[column] = value < threshold ? 0 : kept;
      }
    }
  }
}

}  // namespace

Tensor in_row_chunks(const std::vector<Tensor>& rows, const std::vector<Tensor>& whole,
                     int64_t chunk, const RowFunction& f) {
  LRA_CHECK(!rows.empty());
  auto plan = c10::make_intrusive<Plan>();
  plan->f = f;
  plan->num_row_tensors = static_cast<int64_t>(rows.size());
  plan->chunk = std::max<int64_t>(1, chunk);
  plan->length = rows[0].size(1);
  variable_list all = rows;
  all.insert(all.end(), whole.begin(), whole.end());
  return RowChunksFunction::apply(at::TensorList(all), plan);
}

Tensor weight_dropout(at::IntArrayRef shape, int64_t first, const ops::AttentionDropout& dropout,
                      const at::TensorOptions& options) {
  Tensor factors = at::empty(shape, at::kFloat);
  const int64_t rows = shape[2], columns = shape[3];
  auto* data = factors.mutable_data_ptr<float>();
  parallel_ranges(shape[0] * shape[1] * rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      dropout_row({data + r * columns, static_cast<size_t>(columns)},
                  static_cast<uint32_t>(r / rows), static_cast<uint32_t>(first + r % rows),
                  dropout);
    }
  });
  return layers::on_device(factors.to(options.device(at::kCPU)), options.device());
}

}  // namespace lra::mixers
