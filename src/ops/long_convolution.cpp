#include "ops/long_convolution.h"

#include "kernels/convolution/transforms.h"
#include "ops/composed.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using Mask = MaybeTensor;

// Lags up to which sums are faster than transforms (docs/numerics.md).
constexpr int64_t kMaxDirectWidth = 32;

template <typename T>
kernels::Convolution<T> convolution_problem(const Tensor& x, const Mask& mask, int64_t width,
                                            int64_t future) {
  return {.batch = x.size(0),
          .length = x.size(1),
          .channels = x.size(2),
          .width = width,
          .future = future,
          .x = const_data<T>(x),
          .valid = mask ? mask->const_data_ptr<uint8_t>() : nullptr};
}

Tensor convolution_cpu(const Tensor& x_in, const Mask& mask, const Tensor& kernel, int64_t future) {
  check_convolution(x_in, mask, kernel, future);
  const Tensor x = x_in.contiguous(), weights = kernel.t().contiguous();
  Tensor y = at::empty_like(x);
  with_float_type(x, "lra::convolution", [&]<typename T>(T) {
    auto problem = convolution_problem<T>(x, mask, kernel.size(1), future);
    problem.kernel = const_data<kernels::Wide<T>>(weights);
    problem.y = mutable_data<T>(y);
    kernel.size(1) > kMaxDirectWidth ? kernels::convolve_by_transforms(problem)
                                     : kernels::convolve(problem);
  });
  return y;
}

// Gradients of x and kernel; those that are not needed remain undefined.
std::tuple<Tensor, Tensor> backward_cpu(const Tensor& grad_in, const Tensor& x_in, const Mask& mask,
                                        const Tensor& kernel, int64_t future,
                                        std::array<bool, 2> needed) {
  const int64_t width = kernel.size(1);
  check_convolution(x_in, mask, kernel, future);
  LRA_CHECK_EQ(grad_in.sizes(), x_in.sizes());
  const Tensor x = x_in.contiguous(), grad = grad_in.contiguous();
  const bool is_direct = width <= kMaxDirectWidth;
  Tensor of_x, of_kernel;
  if (needed[0]) of_x = at::empty_like(x);
  if (needed[1]) of_kernel = at::empty({width, x.size(2)}, kernel.options());
  // Turned around, the kernel takes the gradient of y to that of x.
  const Tensor weights = (is_direct ? kernel.flip(1) : kernel).t().contiguous();
  with_float_type(x, "lra::convolution_backward", [&]<typename T>(T) {
    using W = kernels::Wide<T>;
    auto problem = convolution_problem<T>(x, mask, width, future);
    const T* const grads = const_data<T>(grad);
    T* const to_x = needed[0] ? mutable_data<T>(of_x) : nullptr;
    W* const to_kernel = needed[1] ? mutable_data<W>(of_kernel) : nullptr;
    if (is_direct && needed[1]) kernels::convolution_kernel_gradient(problem, grads, to_kernel);
    problem.kernel = const_data<W>(weights);
    if (!is_direct) {
      kernels::convolution_gradients_by_transforms(problem, grads, to_x, to_kernel);
    } else if (needed[0]) {
      problem.x = grads;
      problem.future = width - 1 - future;
      problem.y = to_x;
      kernels::convolve(problem);
    }
  });
  return {of_x, needed[1] ? of_kernel.t().contiguous() : of_kernel};
}

Tensor call_convolution(const Tensor& x, const Mask& mask, const Tensor& kernel, int64_t future) {
  return dispatch<"lra::convolution", convolution_cpu>(x, mask, kernel, future);
}

Tensor composed_convolution(const Tensor& x, const Mask& mask, const Tensor& kernel,
                            int64_t future) {
  check_convolution(x, mask, kernel, future);
  const int64_t length = x.size(1), size = kernels::fourier_size(length + kernel.size(1));
  const Tensor spectra = at::fft_rfft(without_padding(x.to(wide_type(x)), mask), size, 1) *
                         at::fft_rfft(kernel, size, 1).t();
  const Tensor y = at::fft_irfft(spectra, size, 1).narrow(1, future, length);
  return without_padding(y, mask).to(x.scalar_type()).contiguous();
}

// The gradient lies where the sequence lies in the whole convolution: `future` positions behind.
std::tuple<Tensor, Tensor> composed_backward(const Tensor& grad, const Tensor& x, const Mask& mask,
                                             const Tensor& kernel, int64_t future,
                                             std::array<bool, 2> needed) {
  check_convolution(x, mask, kernel, future);
  const int64_t length = x.size(1), width = kernel.size(1);
  const int64_t size = kernels::fourier_size(length + width);
  const auto spectrum = [&](const Tensor& t) {
    return at::fft_rfft(without_padding(t.to(wide_type(x)), mask), size, 1);
  };
  const Tensor of_y = spectrum(grad);
  Tensor of_x, of_kernel;
  if (needed[0]) {
    const Tensor whole = at::fft_irfft(of_y * at::fft_rfft(kernel, size, 1).t().conj(), size, 1);
    of_x = without_padding(whole.roll(future, 1).narrow(1, 0, length), mask)
               .to(x.scalar_type())
               .contiguous();
  }
  if (needed[1]) {
    const Tensor sum = (of_y * spectrum(x).conj()).sum(0);
    of_kernel = at::fft_irfft(sum, size, 0).roll(future, 0).narrow(0, 0, width).t().contiguous();
  }
  return {of_x, of_kernel};
}

struct ConvolutionFunction : torch::autograd::Function<ConvolutionFunction> {
  // The mask comes last: needs_input_grad() counts the tensors that exist.
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& kernel,
                        const Mask& mask, int64_t future) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({x, kernel, tensor_or_empty(mask)});
    ctx->saved_data["future"] = future;
    return call_convolution(x, mask, kernel, future);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &kernel = saved[1], &grad = grads[0];
    const Mask mask = optional_tensor(saved[2]);
    const int64_t future = ctx->saved_data["future"].toInt();
    if (at::GradMode::is_enabled()) {
      const auto y = [&](const auto& in) {
        return variable_list{composed_convolution(in[0], mask, in[1], future)};
      };
      return composed_gradients("lra::convolution", y, {x, kernel}, grads, 4);
    }
    auto [of_x, of_kernel] = dispatch<"lra::convolution_backward", backward_cpu>(
        grad, x, mask, kernel, future,
        std::array{ctx->needs_input_grad(0), ctx->needs_input_grad(1)});
    return {of_x, of_kernel, Tensor(), Tensor()};
  }
};

}  // namespace

void check_convolution(const Tensor& x, const MaybeTensor& mask, const Tensor& kernel,
                       int64_t future) {
  LRA_CHECK(x.dim() == 3 && kernel.dim() == 2);
  LRA_CHECK_EQ(kernel.size(0), x.size(2));
  LRA_CHECK(kernel.scalar_type() == wide_type(x));
  LRA_CHECK(0 <= future && future < kernel.size(1));
  check_mask(mask, x.size(0), x.size(1));
}

UsedLags used_lags(const Tensor& kernel_DK, int64_t future, int64_t length) {
  const int64_t reach = length - 1, first = std::max<int64_t>(0, future - reach);
  const int64_t end = std::min(kernel_DK.size(1), future + reach + 1);
  return {kernel_DK.narrow(1, first, end - first), future - first};
}

Tensor long_convolution(const Tensor& x_BLD, const Tensor& mask_BL, const Tensor& kernel_DK,
                        int64_t future) {
  const UsedLags used = used_lags(kernel_DK, future, x_BLD.size(1));
  // A copy, because the tensor kept for the backward pass would otherwise hold on to unused lags.
  return call_convolution(x_BLD, optional_tensor(mask_BL), used.kernel_DK.contiguous(),
                          used.future);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("convolution(Tensor x, Tensor? mask, Tensor kernel, int future=0) -> Tensor",
        composed_convolution);
  m.def(
      "convolution_backward(Tensor grad, Tensor x, Tensor? mask, Tensor kernel, int future, "
      "bool[2] needed) -> (Tensor, Tensor)",
      composed_backward);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("convolution", convolution_cpu);
  m.impl("convolution_backward", backward_cpu);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("convolution",
         [](const Tensor& x, const Mask& mask, const Tensor& kernel, int64_t future) {
           return ConvolutionFunction::apply(x, kernel, mask, future);
         });
}

}  // namespace lra::ops
