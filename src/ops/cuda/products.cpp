// Linear layers and products on a device: the library's.
#include "ops/cuda/device.h"
#include "ops/feed_forward.h"
#include "ops/linear.h"
#include "ops/pointwise/pointwise.h"
#include "ops/product.h"

namespace lra::ops::device {
namespace {

Tensor linear_impl(const Tensor& x, const Tensor& weight, const MaybeTensor& bias) {
  return at::linear(x, beside(weight, x), bias ? MaybeTensor(beside(*bias, x)) : bias);
}

Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return ops::gelu_dropout(linear_impl(x, weight, bias), 0, 0);
}

Tensor sum_of_outer_products(const Tensor& a, const Tensor& b) {
  LRA_CHECK(a.dim() == 2 && b.dim() == 2 && a.scalar_type() == b.scalar_type());
  LRA_CHECK_EQ(a.size(0), b.size(0));
  return wide_product(a.t(), b);
}

Tensor sum_of_rows(const Tensor& x) { return x.sum(0, false, wide_type(x)); }

std::tuple<Tensor, Tensor, Tensor> linear_backward(const Tensor& grad, const Tensor& x,
                                                   const Tensor& weight_in, bool need_x,
                                                   bool need_bias) {
  const Tensor weight = beside(weight_in, x);
  const Tensor grad_2d = grad.reshape({-1, grad.size(-1)}), x_2d = x.reshape({-1, x.size(-1)});
  return {need_x ? at::mm(grad_2d, weight).view(x.sizes()) : Tensor(),
          sum_of_outer_products(grad_2d, x_2d), need_bias ? sum_of_rows(grad_2d) : Tensor()};
}

Tensor linear_backward_input(const Tensor& grad, const Tensor& weight) {
  return at::matmul(grad, weight);
}

void add_linear_backward_input(const Tensor& sum, const Tensor& grad, const Tensor& weight) {
  sum.addmm_(grad, weight);
}

Tensor product(const Tensor& a, const Tensor& b) {
  LRA_CHECK_EQ(a.dim(), b.dim());
  LRA_CHECK_GE(a.dim(), 2);
  LRA_CHECK_EQ(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
  LRA_CHECK_EQ(a.size(-1), b.size(-2));
  return at::matmul(a, b);
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("linear", linear_impl);
  m.impl("linear_gelu", linear_gelu);
  m.impl("linear_backward_input", linear_backward_input);
  m.impl("linear_backward", linear_backward);
  m.impl("add_linear_backward_input_", add_linear_backward_input);
  m.impl("product", product);
  m.impl("sum_of_outer_products", sum_of_outer_products);
  m.impl("sum_of_outer_products_and_rows", [](const Tensor& a, const Tensor& b) {
    return std::tuple(sum_of_outer_products(a, b), sum_of_rows(a));
  });
  m.impl("sum_of_rows", sum_of_rows);
}

}  // namespace lra::ops::device
