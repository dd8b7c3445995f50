#include "ops/adam.h"

#include <cmath>

#include "kernels/adam/adam.h"
#include "ops/dispatch.h"

namespace lra::ops {
namespace {

// Parameters, their gradients and moments are float32 or float64, regardless of the activations.
template <typename F>
auto with_parameter_type(const Tensor& t, F f) {
  if (t.scalar_type() == at::kDouble) return f(double{});
  LRA_CHECK(t.scalar_type() == at::kFloat);
  return f(float{});
}

void adam_step_impl(Tensor& parameters, const Tensor& gradients, Tensor& m, Tensor& v,
                    at::ArrayRef<double> options, int64_t step, double grad_scale,
                    const MaybeTensor& norm, double clip_norm) {
  LRA_CHECK_EQ(options.size(), size_t{5});
  const double clipped = clip_norm > 0 ? check_norm(norm).item<double>() : 0;
  if (clipped > clip_norm) grad_scale *= clip_norm / clipped;
  for (const Tensor* t : {const_cast<const Tensor*>(&parameters), &gradients,
                          const_cast<const Tensor*>(&m), const_cast<const Tensor*>(&v)}) {
    LRA_CHECK(t->is_contiguous());
    LRA_CHECK_EQ(t->numel(), parameters.numel());
  }
  with_parameter_type(parameters, [&]<typename T>(T) {
    kernels::adam_step<T>(parameters.numel(), parameters.mutable_data_ptr<T>(),
                          gradients.const_data_ptr<T>(), m.mutable_data_ptr<T>(),
                          v.mutable_data_ptr<T>(),
                          {.learning_rate = options[0],
                           .beta1 = options[1],
                           .beta2 = options[2],
                           .epsilon = options[3],
                           .weight_decay = options[4],
                           .step = step,
                           .grad_scale = grad_scale});
  });
}

Tensor gradient_norm_impl(const Tensor& gradients) {
  LRA_CHECK(gradients.is_contiguous());
  return with_parameter_type(gradients, [&]<typename T>(T) {
    return at::scalar_tensor(
        std::sqrt(kernels::sum_of_squares<T>(gradients.numel(), gradients.const_data_ptr<T>()).sum),
        at::kDouble);
  });
}

}  // namespace

const Tensor& check_norm(const MaybeTensor& norm) {
  LRA_CHECK(norm && norm->scalar_type() == at::kDouble && norm->numel() == 1);
  return *norm;
}

void adam_step(Tensor& parameters, const Tensor& gradients, Tensor& m, Tensor& v,
               const AdamOptions& o, int64_t step, double grad_scale, const Tensor& norm,
               double clip_norm) {
  const std::array<double, 5> options = {o.learning_rate, o.beta1, o.beta2, o.epsilon,
                                         o.weight_decay};
  dispatch<"lra::adam_step_", adam_step_impl>(parameters, gradients, m, v, options, step,
                                              grad_scale, optional_tensor(norm), clip_norm);
}

Tensor norm_of(const Tensor& flat) {
  return dispatch<"lra::gradient_norm", gradient_norm_impl>(flat);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def(
      "adam_step_(Tensor(a!) parameters, Tensor gradients, Tensor(b!) m, Tensor(c!) v, float[] "
      "options, int step, float grad_scale, Tensor? norm=None, float clip_norm=0.) -> ()");
  m.def("gradient_norm(Tensor gradients) -> Tensor");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("adam_step_", adam_step_impl);
  m.impl("gradient_norm", gradient_norm_impl);
}

}  // namespace lra::ops
