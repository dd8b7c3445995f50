#include "ops/pointwise/pointwise.h"

#include "kernels/pointwise/pointwise.h"
#include "ops/fused_function.h"

namespace lra::ops {
namespace {

// Schemas know signed integers only; the bits of the key pass unchanged.
kernels::Dropout dropout_of(double rate, int64_t key, int64_t first_row) {
  return {rate, static_cast<uint64_t>(key), first_row};
}

// y like x from kernel(count, x, y).
template <typename Kernel>
Tensor each(const Tensor& x_in, const char* name, const Kernel& kernel) {
  const Tensor x = x_in.contiguous();
  Tensor y = at::empty_like(x);
  with_float_type(x, name,
                  [&]<typename T>(T) { kernel(x.numel(), const_data<T>(x), mutable_data<T>(y)); });
  return y;
}

Tensor dropout_impl(const Tensor& x, double rate, int64_t key, int64_t first_row) {
  return each(x, "lra::dropout", [&]<typename T>(int64_t count, const T* from, T* to) {
    kernels::apply_dropout<T>(count, from, to, dropout_of(rate, key, first_row));
  });
}

Tensor dropout_add_impl(const Tensor& x, const Tensor& residual_in, double rate, int64_t key,
                        int64_t first_row) {
  const Tensor residual = residual_in.contiguous();
  LRA_CHECK_EQ(x.sizes(), residual.sizes());
  return each(x, "lra::dropout_add", [&]<typename T>(int64_t count, const T* from, T* to) {
    kernels::dropout_add<T>(count, const_data<T>(residual), from, to,
                            dropout_of(rate, key, first_row));
  });
}

Tensor gelu_dropout_impl(const Tensor& x, double rate, int64_t key, int64_t first_row) {
  return each(x, "lra::gelu_dropout", [&]<typename T>(int64_t count, const T* from, T* to) {
    kernels::gelu_dropout<T>(count, from, to, dropout_of(rate, key, first_row));
  });
}

std::tuple<Tensor, Tensor, Tensor> gelu_dropout_backward_impl(const Tensor& x_in,
                                                              const Tensor& grad_in, double rate,
                                                              int64_t key, int64_t first_row,
                                                              bool again) {
  const Tensor x = x_in.contiguous(), grad = grad_in.contiguous();
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  const Tensor grad_x = at::empty_like(x), y = again ? at::empty_like(x) : x.new_empty({0});
  with_float_type(x, "lra::gelu_dropout_backward", [&]<typename T>(T) {
    kernels::gelu_dropout_backward<T>(x.numel(), const_data<T>(x), const_data<T>(grad),
                                      mutable_data<T>(grad_x), again ? mutable_data<T>(y) : nullptr,
                                      dropout_of(rate, key, first_row));
  });
  return {y, grad_x, at::empty({0}, x.options().dtype(at::kFloat))};
}

Tensor composed_dropout_add(const Tensor& x, const Tensor& residual, double rate, int64_t key,
                            int64_t first_row) {
  LRA_CHECK_EQ(x.sizes(), residual.sizes());
  return residual + dropout(x, rate, static_cast<uint64_t>(key), first_row);
}

Tensor composed_gelu_dropout(const Tensor& x, double rate, int64_t key, int64_t first_row) {
  return dropout(at::gelu(x, "tanh"), rate, static_cast<uint64_t>(key), first_row);
}

// What the backward pass draws again.
struct Drawn {
  double rate;
  int64_t key, first_row;
  void save(AutogradContext* ctx) const {
    ctx->saved_data["rate"] = rate;
    ctx->saved_data["key"] = key;
    ctx->saved_data["first_row"] = first_row;
  }
  static Drawn saved(AutogradContext* ctx) {
    return {ctx->saved_data["rate"].toDouble(), ctx->saved_data["key"].toInt(),
            ctx->saved_data["first_row"].toInt()};
  }
  // Without dropout that is the gradient itself: no pass over memory.
  Tensor through(const Tensor& grad) const {
    return dropout(grad, rate, static_cast<uint64_t>(key), first_row);
  }
};

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double rate, int64_t key,
                        int64_t first_row) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    Drawn{rate, key, first_row}.save(ctx);
    return dropout(x, rate, static_cast<uint64_t>(key), first_row);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {Drawn::saved(ctx).through(grads[0]), Tensor(), Tensor(), Tensor()};
  }
};

struct DropoutAddFunction : torch::autograd::Function<DropoutAddFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& residual, double rate,
                        int64_t key, int64_t first_row) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    Drawn{rate, key, first_row}.save(ctx);
    return dropout_add(x, residual, rate, static_cast<uint64_t>(key), first_row);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {Drawn::saved(ctx).through(grads[0]), grads[0], Tensor(), Tensor(), Tensor()};
  }
};

struct GeluDropoutFunction : FusedFunction<GeluDropoutFunction, composed_gelu_dropout> {
  static constexpr const char* kName = "lra::gelu_dropout";

  static Tensor fused(const Tensor& x, double rate, int64_t key, int64_t first_row) {
    return gelu_dropout(x, rate, static_cast<uint64_t>(key), first_row);
  }
  static Tensor gradients(const Tensor& grad, const variable_list&, const Tensor& x, double rate,
                          int64_t key, int64_t first_row) {
    return gelu_dropout_backward(x, grad, rate, static_cast<uint64_t>(key), first_row, false).x;
  }
};

}  // namespace

Tensor dropout(const Tensor& x, double rate, uint64_t key, int64_t first_row) {
  if (rate == 0) return x;
  return dispatch<"lra::dropout", dropout_impl>(x, rate, static_cast<int64_t>(key), first_row);
}

Tensor dropout_add(const Tensor& x, const Tensor& residual, double rate, uint64_t key,
                   int64_t first_row) {
  return dispatch<"lra::dropout_add", dropout_add_impl>(x, residual, rate,
                                                        static_cast<int64_t>(key), first_row);
}

Tensor gelu_dropout(const Tensor& x, double rate, uint64_t key, int64_t first_row) {
  return dispatch<"lra::gelu_dropout", gelu_dropout_impl>(x, rate, static_cast<int64_t>(key),
                                                          first_row);
}

GeluDropoutGrads gelu_dropout_backward(const Tensor& x, const Tensor& grad, double rate,
                                       uint64_t key, int64_t first_row, bool again) {
  auto [y, grad_x, sums] = dispatch<"lra::gelu_dropout_backward", gelu_dropout_backward_impl>(
      x, grad, rate, static_cast<int64_t>(key), first_row, again);
  return {y, grad_x, sums};
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("dropout(Tensor x, float rate, int key, int first_row=0) -> Tensor");
  m.def("dropout_add(Tensor x, Tensor residual, float rate, int key, int first_row=0) -> Tensor",
        composed_dropout_add);
  m.def("gelu_dropout(Tensor x, float rate, int key, int first_row=0) -> Tensor",
        composed_gelu_dropout);
  m.def(
      "gelu_dropout_backward(Tensor x, Tensor grad, float rate, int key, int first_row=0, bool "
      "again=True) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("dropout", dropout_impl);
  m.impl("dropout_add", dropout_add_impl);
  m.impl("gelu_dropout", gelu_dropout_impl);
  m.impl("gelu_dropout_backward", gelu_dropout_backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("gelu_dropout", applies<GeluDropoutFunction>(gelu_dropout_impl));
  m.impl("dropout", applies<DropoutFunction>(dropout_impl));
  m.impl("dropout_add", applies<DropoutAddFunction>(dropout_add_impl));
}

}  // namespace lra::ops
