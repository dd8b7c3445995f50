#include "ops/long_convolution.h"

#include "base/parallel.h"
#include "kernels/convolution/convolution.h"
#include "ops/composed.h"
#include "ops/one_blas_thread.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Mask = std::optional<Tensor>;

// Lags up to which sums are faster than transforms (docs/numerics.md).
constexpr int64_t kMaxDirectWidth = 384;
// Numbers that are transformed at a time.
constexpr int64_t kChunkNumbers = int64_t{1} << 19;

// The smallest even number without other factors than 2, 3 and 5 that is not below `size`.
int64_t transform_size(int64_t size) {
  for (int64_t n = size + size % 2;; n += 2) {
    int64_t rest = n;
    for (const int64_t factor : {2, 3, 5}) {
      while (rest % factor == 0) rest /= factor;
    }
    if (rest == 1) return n;
  }
}

// Some channels, or some rows of the batch.
struct Slice {
  int64_t first, count;
  Tensor of(const Tensor& t, int64_t dim) const { return t.narrow(dim, first, count); }
};

// Circular convolutions as products of spectra. The circle is long enough that the part that is
// read has no term twice: `future` and `past` are the reach of the kernel in both directions.
struct Circle {
  Circle(const Tensor& x, const Mask& mask, int64_t width, int64_t future)
      : x(x), mask(mask), length(x.size(1)), width(width), future(future) {
    size = transform_size(std::max(width, length + std::max(future, width - 1 - future)));
    chunk = std::clamp<int64_t>(kChunkNumbers / (x.size(0) * size), 1, x.size(2));
    rows = std::clamp<int64_t>(kChunkNumbers / (chunk * size), 1, x.size(0));
  }

  // Calls body(channels) for each chunk, on one thread each.
  template <typename F>
  void for_each_chunk(const F& body) const {
    const int64_t channels = x.size(2), chunks = (channels + chunk - 1) / chunk;
    const auto run = [&](int64_t index) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      body(Slice{index * chunk, std::min(chunk, channels - index * chunk)});
    };
    // A single chunk would not be in a parallel region, and the library would take all threads.
    parallel_for_each(std::max<int64_t>(2, chunks), [&](int64_t index) {
      const OneBlasThread one_thread;
      if (index < chunks) run(index);
    });
  }
  // Calls body(rows) in order: of all of them, unless one channel of these is more than a chunk.
  template <typename F>
  void for_each_rows(const F& body) const {
    const int64_t batch = x.size(0);
    for (int64_t row = 0; row < batch; row += rows) body(Slice{row, std::min(rows, batch - row)});
  }
  // Spectra [channels, rows, size / 2 + 1] of t [B, L, D], of which only valid positions count.
  Tensor spectra(const Tensor& t, Slice of_rows, Slice channels) const {
    Tensor part = channels.of(of_rows.of(t, 0), 2).permute({2, 0, 1});
    part = part.to(wide_type(t)).contiguous();
    if (mask) part = part * of_rows.of(*mask, 0);
    return at::fft_rfft(part, size);
  }

  const Tensor& x;
  const Mask& mask;
  int64_t length, width, future, size, chunk, rows;
};

Tensor convolution_by_transforms(const Tensor& x, const Mask& mask, const Tensor& kernel,
                                 int64_t future) {
  const Circle circle(x, mask, kernel.size(1), future);
  Tensor y = at::empty(x.sizes(), x.options());
  circle.for_each_chunk([&](Slice channels) {
    const Tensor of_kernel = at::fft_rfft(channels.of(kernel, 0), circle.size).unsqueeze(1);
    circle.for_each_rows([&](Slice rows) {
      const Tensor whole =
          at::fft_irfft(circle.spectra(x, rows, channels).mul_(of_kernel), circle.size);
      channels.of(rows.of(y, 0), 2)
          .copy_(whole.narrow(2, future, circle.length).permute({1, 2, 0}));
    });
  });
  return mask ? y.mul_(mask->unsqueeze(2)) : y;
}

// lag m of the correlation of gradient and x is number m modulo the size of the circle.
Tensor kernel_gradient_by_transforms(const Tensor& grad, const Tensor& x, const Mask& mask,
                                     int64_t width, int64_t future) {
  const Circle circle(x, mask, width, future);
  Tensor of_kernel = at::empty({x.size(2), width}, x.options().dtype(wide_type(x)));
  circle.for_each_chunk([&](Slice channels) {
    Tensor sum;
    circle.for_each_rows([&](Slice rows) {
      const Tensor products = circle.spectra(grad, rows, channels)
                                  .mul_(circle.spectra(x, rows, channels).conj_physical_());
      sum = sum.defined() ? sum.add_(products.sum(1)) : products.sum(1);
    });
    const Tensor lags = at::fft_irfft(sum, circle.size);
    channels.of(of_kernel, 0).copy_(lags.roll(future, 1).narrow(1, 0, width));
  });
  return of_kernel;
}

template <typename T>
kernels::Convolution<T> direct_problem(const Tensor& x, const Mask& mask, int64_t width,
                                       int64_t future) {
  return {.batch = x.size(0),
          .length = x.size(1),
          .channels = x.size(2),
          .width = width,
          .future = future,
          .x = const_data<T>(x),
          .valid = mask ? mask->const_data_ptr<uint8_t>() : nullptr};
}

void check_arguments(const Tensor& x, const Mask& mask, int64_t width, int64_t future) {
  LRA_CHECK_EQ(x.dim(), 3);
  LRA_CHECK(0 <= future && future < width);
  check_mask(mask, x.size(0), x.size(1));
}

Tensor convolution_cpu(const Tensor& x_in, const Mask& mask, const Tensor& kernel, int64_t future) {
  check_arguments(x_in, mask, kernel.size(1), future);
  if (kernel.size(1) > kMaxDirectWidth) {
    return convolution_by_transforms(x_in, mask, kernel, future);
  }
  const Tensor x = x_in.contiguous(), weights = kernel.t().contiguous();
  Tensor y = at::empty_like(x);
  with_float_type(x, "lra::convolution", [&](auto zero) {
    using T = decltype(zero);
    auto problem = direct_problem<T>(x, mask, kernel.size(1), future);
    problem.kernel = const_data<kernels::Wide<T>>(weights);
    problem.y = mutable_data<T>(y);
    kernels::convolve(problem);
  });
  return y;
}

Tensor kernel_gradient_cpu(const Tensor& grad_in, const Tensor& x_in, const Mask& mask,
                           int64_t width, int64_t future) {
  check_arguments(x_in, mask, width, future);
  if (width > kMaxDirectWidth) {
    return kernel_gradient_by_transforms(grad_in, x_in, mask, width, future);
  }
  const Tensor x = x_in.contiguous(), grad = grad_in.contiguous();
  Tensor weights = at::empty({width, x.size(2)}, x.options().dtype(wide_type(x)));
  with_float_type(x, "lra::convolution_kernel_gradient", [&](auto zero) {
    using T = decltype(zero);
    kernels::convolution_kernel_gradient(direct_problem<T>(x, mask, width, future),
                                         const_data<T>(grad),
                                         mutable_data<kernels::Wide<T>>(weights));
  });
  return weights.t().contiguous();
}

Tensor call_convolution(const Tensor& x, const Mask& mask, const Tensor& kernel, int64_t future) {
  static const auto op = find_op<decltype(convolution_cpu)>("lra::convolution");
  return op.call(x, mask, kernel, future);
}

Tensor call_kernel_gradient(const Tensor& grad, const Tensor& x, const Mask& mask, int64_t width,
                            int64_t future) {
  static const auto op = find_op<decltype(kernel_gradient_cpu)>("lra::convolution_kernel_gradient");
  return op.call(grad, x, mask, width, future);
}

Tensor composed(const Tensor& x, const Mask& mask, const Tensor& kernel, int64_t future) {
  check_arguments(x, mask, kernel.size(1), future);
  const int64_t length = x.size(1), size = transform_size(length + kernel.size(1));
  const Tensor spectra = at::fft_rfft(without_padding(x.to(wide_type(x)), mask), size, 1) *
                         at::fft_rfft(kernel, size, 1).t();
  const Tensor y = at::fft_irfft(spectra, size, 1).narrow(1, future, length);
  return without_padding(y, mask).to(x.scalar_type());
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
    const int64_t width = kernel.size(1), future = ctx->saved_data["future"].toInt();
    if (at::GradMode::is_enabled()) {
      const auto y = [&](const auto& in) {
        return variable_list{composed(in[0], mask, in[1], future)};
      };
      return composed_gradients("lra::convolution", y, {x, kernel}, grads, 4);
    }
    Tensor of_x, of_kernel;
    if (ctx->needs_input_grad(0)) {
      of_x = call_convolution(grad, mask, kernel.flip(1), width - 1 - future);
    }
    if (ctx->needs_input_grad(1)) of_kernel = call_kernel_gradient(grad, x, mask, width, future);
    return {of_x, of_kernel, Tensor(), Tensor()};
  }
};

}  // namespace

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
  m.def("convolution(Tensor x, Tensor? mask, Tensor kernel, int future=0) -> Tensor", composed);
  m.def(
      "convolution_kernel_gradient(Tensor grad, Tensor x, Tensor? mask, int width, int future) -> "
      "Tensor");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("convolution", convolution_cpu);
  m.impl("convolution_kernel_gradient", kernel_gradient_cpu);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("convolution",
         [](const Tensor& x, const Mask& mask, const Tensor& kernel, int64_t future) {
           return ConvolutionFunction::apply(x, kernel, mask, future);
         });
}

}  // namespace lra::ops
