#include "ops/scan/diagonal_scan.h"

#include "ops/fused_function.h"
#include "ops/precision.h"
#include "ops/scan/diagonal_scan_problem.h"

namespace lra::ops {
namespace {

Tensor diagonal_scan_forward_impl(const Tensor& x, const Tensor& a, const Tensor& c,
                                  const MaybeTensor& skip, const MaybeTensor& mask) {
  const DiagonalScanArguments in(x, a, c, skip, mask);
  const Tensor y = at::empty_like(in.x);
  with_float_type(x, "lra::diagonal_scan", [&]<typename T>(T) {
    kernels::diagonal_scan_forward<T>(in.problem<T>(), mutable_data<T>(y));
  });
  return y;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> diagonal_scan_backward_impl(
    const Tensor& grad_in, const Tensor& x, const Tensor& a, const Tensor& c,
    const MaybeTensor& skip, const MaybeTensor& mask) {
  const DiagonalScanArguments in(x, a, c, skip, mask);
  const Tensor grad = grad_in.contiguous(), grad_x = at::empty_like(in.x);
  LRA_CHECK_EQ(grad.sizes(), x.sizes());
  const int64_t channels = x.size(2);
  const Tensor grads = at::empty({a.numel() + c.numel() + channels}, a.options());
  with_float_type(x, "lra::diagonal_scan", [&]<typename T>(T) {
    kernels::diagonal_scan_backward<T>(
        {.problem = in.problem<T>(),
         .grad = const_data<T>(grad),
         .grad_x = mutable_data<T>(grad_x),
         .grad_parameters = grads.mutable_data_ptr<kernels::Wide<T>>()});
  });
  const auto parts = grads.split_with_sizes({a.numel(), c.numel(), channels});
  return {grad_x, parts[0].view(a.sizes()), parts[1].view(c.sizes()), parts[2]};
}

struct DiagonalScanFunction
    : FusedOperator<DiagonalScanFunction, "lra::diagonal_scan", composed_diagonal_scan,
                    "lra::diagonal_scan_backward", diagonal_scan_backward_impl,
                    /*kMaskPlace=*/4> {};

}  // namespace

void check_diagonal_scan(const Tensor& x, const Tensor& a, const Tensor& c, const MaybeTensor& skip,
                         const MaybeTensor& mask) {
  LRA_CHECK(x.dim() == 3 && a.dim() == 3 && c.dim() == 4);
  LRA_CHECK(a.size(0) == 1 || a.size(0) == 2);
  LRA_CHECK(c.size(0) == 1 || c.size(0) == 2);
  LRA_CHECK_EQ(c.sizes().slice(1), a.sizes());
  LRA_CHECK(a.size(1) >= 1 && a.size(1) <= kernels::kMaxScanModes);
  LRA_CHECK_EQ(a.size(2), x.size(2));
  LRA_CHECK(a.scalar_type() == wide_type(x) && c.scalar_type() == wide_type(x));
  if (skip) {
    LRA_CHECK(skip->dim() == 1 && skip->size(0) == x.size(2));
    LRA_CHECK(skip->scalar_type() == wide_type(x));
  }
  check_mask(mask, x.size(0), x.size(1));
}

Tensor diagonal_scan(const DiagonalScanInput& in) {
  return dispatch<"lra::diagonal_scan", diagonal_scan_forward_impl>(
      in.x_BLD, in.a_PND, in.c_KPND, optional_tensor(in.skip_D), optional_tensor(in.mask_BL));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "diagonal_scan(Tensor x, Tensor a, Tensor c, Tensor? skip=None, Tensor? mask=None) -> Tensor",
      composed_diagonal_scan);
  m.def(
      "diagonal_scan_backward(Tensor grad, Tensor x, Tensor a, Tensor c, Tensor? skip, Tensor? "
      "mask) -> (Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("diagonal_scan", diagonal_scan_forward_impl);
  m.impl("diagonal_scan_backward", diagonal_scan_backward_impl);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("diagonal_scan", applies<DiagonalScanFunction>(diagonal_scan_forward_impl));
}

}  // namespace lra::ops
