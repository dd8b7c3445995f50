#include "ops/feed_forward.h"

#include "kernels/pointwise/pointwise.h"
#include "ops/composed.h"
#include "ops/linear.h"
#include "ops/pointwise/layer_norm.h"
#include "ops/pointwise/pointwise.h"
#include "ops/precision.h"
#include "ops/product.h"

namespace lra::ops {
namespace {

constexpr double kNormEps = 1e-6;

// Rows at a time on the CPU: the values between the two products stay in the cache and never exist
// as a whole. The same at any number of threads, because sums over rows are made of these slices.
// Wide layers take more, since their products are cut into larger slices (product.h).
constexpr int64_t kRows = 2048, kRowsOfWide = 4096, kWide = 512;
static_assert(kRows % kernels::kDropoutRowLength == 0);  // so that a part begins a dropout row

struct Rows {
  int64_t first, count;
  Tensor of(const Tensor& t) const { return t.narrow(0, first, count); }
  // First dropout row of these rows of hidden values, `width` in each.
  int64_t dropout_row(int64_t width) const { return first * width / kernels::kDropoutRowLength; }
};

std::vector<Rows> parts_of(const Tensor& x, int64_t hidden_width) {
  const int64_t rows = x.size(0);
  if (!x.is_cpu()) return {{0, rows}};
  const int64_t most = hidden_width < kWide ? kRows : kRowsOfWide;
  std::vector<Rows> parts;
  for (int64_t first = 0; first == 0 || first < rows; first += most) {
    parts.push_back({first, std::min(most, rows - first)});
  }
  return parts;
}

Tensor as_rows(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// body(part of x) for all parts, as one array in the shape of x with the rows of w2.
template <typename Body>
Tensor of_all_rows(const Tensor& x, const Tensor& w2, const Body& body) {
  auto shape = x.sizes().vec();
  const int64_t width = shape.back() = w2.size(0);
  const Tensor rows = as_rows(x);
  const auto parts = parts_of(rows, w2.size(1));
  if (parts.size() == 1) return body(rows, parts[0]).view(shape);
  Tensor all = at::empty({rows.size(0), width}, x.options());
  for (const Rows& part : parts) part.of(all).copy_(body(part.of(rows), part));
  return all.view(shape);
}

using MaybeKey = std::optional<int64_t>;

// Weights in the type of x, the layer norm in front of them, and the residual around all.
struct Layers {
  Tensor w1, w2;
  MaybeTensor norm_weight, norm_bias;
  double rate;
  uint64_t key;
  MaybeKey residual_key;

  Tensor normed(const Tensor& x) const {
    return norm_weight ? layer_norm(x, *norm_weight, *norm_bias, kNormEps) : x;
  }
  int64_t hidden_dropout_row(const Rows& part) const { return part.dropout_row(w1.size(0)); }
  // The result of the rows x, given that of the second product.
  Tensor joined(const Tensor& y, const Tensor& x, const Rows& part) const {
    if (!residual_key) return y;
    return dropout_add(y, x, rate, static_cast<uint64_t>(*residual_key),
                       part.dropout_row(w2.size(0)));
  }
  // The gradient of the second product, given that of the result.
  Tensor through_dropout(const Tensor& grad, const Rows& part) const {
    if (!residual_key) return grad;
    return dropout(grad, rate, static_cast<uint64_t>(*residual_key), part.dropout_row(w2.size(0)));
  }
};

Tensor feed_forward_impl(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                         const Tensor& b2, double rate, int64_t key, const MaybeTensor& norm_weight,
                         const MaybeTensor& norm_bias, MaybeKey residual_key) {
  const Layers layers = {beside(w1, x), beside(w2, x), norm_weight,
                         norm_bias,     rate,          static_cast<uint64_t>(key),
                         residual_key};
  return of_all_rows(x, w2, [&](const Tensor& rows, const Rows& part) {
    const Tensor in = layers.normed(rows);
    const Tensor active = rate == 0 ? linear_gelu(in, layers.w1, b1)
                                    : gelu_dropout(linear(in, layers.w1, b1), rate, layers.key,
                                                   layers.hidden_dropout_row(part));
    return layers.joined(linear(active, layers.w2, b2), rows, part);
  });
}

void add(Tensor& sum, const Tensor& part) {
  if (sum.defined()) {
    sum.add_(part);
  } else {
    sum = part;
  }
}

void add(Tensor& weight, Tensor& bias, const SumsOverRows& part) {
  add(weight, part.products);
  add(bias, part.rows);
}

// Gradients of one part after another.
struct FeedForwardGrads {
  bool needs_x = false;
  Tensor x, w1, b1, w2, b2, norm_weight, norm_bias;

  void add_part(const Layers& layers, const Rows& part, const Tensor& x_rows, const Tensor& hidden,
                const Tensor& grad_y, int64_t num_rows) {
    const Tensor grad = layers.through_dropout(grad_y, part);
    const auto inner =
        gelu_dropout_backward(hidden, linear_backward_input(grad, layers.w2), layers.rate,
                              layers.key, layers.hidden_dropout_row(part));
    add(w2, b2, sum_of_outer_products_and_rows(grad, inner.y));
    const bool has_norm = layers.norm_weight.has_value();
    const auto in =
        has_norm ? layer_norm_forward(x_rows, *layers.norm_weight, *layers.norm_bias, kNormEps)
                 : LayerNormValues{x_rows, {}, {}};
    add(w1, b1,
        inner.sums.numel() > 0 ? SumsOverRows{sum_of_outer_products(inner.x, in.y), inner.sums}
                               : sum_of_outer_products_and_rows(inner.x, in.y));
    if (!has_norm && !needs_x) return;
    Tensor grad_x = linear_backward_input(inner.x, layers.w1);
    if (has_norm) {
      const auto grads = layer_norm_backward(grad_x, x_rows, in.mean, in.rstd, *layers.norm_weight,
                                             layers.residual_key ? grad_y : Tensor());
      add(norm_weight, grads.weight);
      add(norm_bias, grads.bias);
      grad_x = grads.x;
    } else if (layers.residual_key) {
      grad_x.add_(grad_y);
    }
    if (needs_x) set_x(part, grad_x, num_rows);
  }

  void set_x(const Rows& part, const Tensor& grad_x, int64_t num_rows) {
    if (part.count == num_rows) {
      x = grad_x;
      return;
    }
    if (!x.defined()) x = at::empty({num_rows, grad_x.size(1)}, grad_x.options());
    part.of(x).copy_(grad_x);
  }
};

// Composed version; `in` holds x, w1, b1, w2, b2, norm_weight and norm_bias.
Tensor composed_feed_forward(const variable_list& in, double rate, uint64_t key,
                             MaybeKey residual_key) {
  const Tensor x = in[5].defined() ? layer_norm(in[0], in[5], in[6], kNormEps) : in[0];
  const Tensor y = linear(gelu_dropout(linear(x, in[1], in[2]), rate, key), in[3], in[4]);
  if (!residual_key) return y;
  return dropout_add(y, in[0], rate, static_cast<uint64_t>(*residual_key));
}

struct FeedForwardFunction : torch::autograd::Function<FeedForwardFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w1_in,
                        const Tensor& b1, const Tensor& w2_in, const Tensor& b2, double rate,
                        int64_t key, const MaybeTensor& norm_weight, const MaybeTensor& norm_bias,
                        MaybeKey residual_key) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Layers layers = {
        beside(w1_in, x),           beside(w2_in, x), norm_weight, norm_bias, rate,
        static_cast<uint64_t>(key), residual_key};
    variable_list saved = {
        x, layers.w1, b1, layers.w2, b2, tensor_or_empty(norm_weight), tensor_or_empty(norm_bias)};
    const Tensor y = of_all_rows(x, w2_in, [&](const Tensor& rows, const Rows& part) {
      const Tensor hidden = saved.emplace_back(linear(layers.normed(rows), layers.w1, b1));
      const Tensor active = gelu_dropout(hidden, rate, layers.key, layers.hidden_dropout_row(part));
      return layers.joined(linear(active, layers.w2, b2), rows, part);
    });
    ctx->save_for_backward(saved);
    ctx->saved_data["rate"] = rate;
    ctx->saved_data["key"] = key;
    ctx->saved_data["residual_key"] = residual_key;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    constexpr size_t kHidden = 7;  // the first of them
    const auto saved = ctx->get_saved_variables();
    const double rate = ctx->saved_data["rate"].toDouble();
    const auto key = static_cast<uint64_t>(ctx->saved_data["key"].toInt());
    const auto residual_key = ctx->saved_data["residual_key"].toOptional<int64_t>();
    if (at::GradMode::is_enabled()) {
      auto of = composed_gradients(
          "lra::feed_forward",
          [&](const auto& in) {
            return variable_list{composed_feed_forward(in, rate, key, residual_key)};
          },
          {saved.begin(), saved.begin() + kHidden}, grads, kHidden);
      of.insert(of.begin() + 5, 2, Tensor());  // rate and key stand in front of the norm
      of.emplace_back();
      return of;
    }
    const Tensor& x = saved[0];
    const Layers layers = {
        saved[1], saved[3],    optional_tensor(saved[5]), optional_tensor(saved[6]), rate,
        key,      residual_key};
    const Tensor grad = as_rows(grads[0]).contiguous(), rows = as_rows(x);
    FeedForwardGrads of;
    of.needs_x = ctx->needs_input_grad(0);
    const auto parts = parts_of(rows, layers.w1.size(0));
    for (size_t i = 0; i < parts.size(); ++i) {
      of.add_part(layers, parts[i], parts[i].of(rows), saved[kHidden + i], parts[i].of(grad),
                  rows.size(0));
    }
    return {of.x.defined() ? of.x.view(x.sizes()) : Tensor(),
            of.w1,
            of.b1,
            of.w2,
            of.b2,
            Tensor(),
            Tensor(),
            of.norm_weight,
            of.norm_bias,
            Tensor()};
  }
};

}  // namespace

Tensor feed_forward(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                    const Tensor& b2, double dropout, uint64_t key, const Tensor& norm_weight,
                    const Tensor& norm_bias, std::optional<uint64_t> residual_key) {
  return dispatch<"lra::feed_forward", feed_forward_impl>(
      x, w1, b1, w2, b2, dropout, static_cast<int64_t>(key), optional_tensor(norm_weight),
      optional_tensor(norm_bias),
      residual_key ? MaybeKey(static_cast<int64_t>(*residual_key)) : std::nullopt);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "feed_forward(Tensor x, Tensor w1, Tensor b1, Tensor w2, Tensor b2, float dropout=0.0, int "
      "key=0, Tensor? norm_weight=None, Tensor? norm_bias=None, int? residual_key=None) -> Tensor");
}

TORCH_LIBRARY_IMPL(lra, CompositeExplicitAutograd, m) { m.impl("feed_forward", feed_forward_impl); }

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("feed_forward", [](const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2,
                            const Tensor& b2, double rate, int64_t key,
                            const MaybeTensor& norm_weight, const MaybeTensor& norm_bias,
                            MaybeKey residual_key) {
    // Evaluation takes the fused path; the function object would keep the hidden values.
    if (!at::GradMode::is_enabled()) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      return feed_forward_impl(x, w1, b1, w2, b2, rate, key, norm_weight, norm_bias, residual_key);
    }
    return FeedForwardFunction::apply(x, w1, b1, w2, b2, rate, key, norm_weight, norm_bias,
                                      residual_key);
  });
}

}  // namespace lra::ops
