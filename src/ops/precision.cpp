#include "ops/precision.h"

namespace lra::ops {
namespace {

// Each thread has its own. They are undefined outside of a RoundedParameters.
thread_local Tensor flat_parameters, rounded_parameters;

// Products of bfloat16 are slow for operands that begin elsewhere.
constexpr int64_t kAlignedNumbers = 8;

bool is_rounded(const Tensor& parameter, at::ScalarType type) {
  return rounded_parameters.defined() && !at::GradMode::is_enabled() &&
         rounded_parameters.scalar_type() == type && parameter.is_alias_of(flat_parameters) &&
         parameter.storage_offset() % kAlignedNumbers == 0;
}

}  // namespace

RoundedParameters::RoundedParameters(const Tensor& flat, at::ScalarType type) {
  if (flat.is_cpu() || flat.scalar_type() == type) return;
  flat_parameters = flat;
  rounded_parameters = flat.detach().to(type);
}

RoundedParameters::~RoundedParameters() {
  flat_parameters.reset();
  rounded_parameters.reset();
}

Tensor beside(const Tensor& parameter, const Tensor& activations) {
  const at::ScalarType type = activations.scalar_type();
  const bool fits = parameter.scalar_type() == type || wide_type(type) == parameter.scalar_type();
  TORCH_CHECK(fits, "a parameter is ", parameter.scalar_type(), " beside activations of type ",
              type);
  if (!is_rounded(parameter, type)) return parameter.to(type);
  return rounded_parameters.as_strided(parameter.sizes(), parameter.strides(),
                                       parameter.storage_offset());
}

}  // namespace lra::ops
