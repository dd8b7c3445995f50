#include "models/receptive_field.h"

namespace lra::models {
namespace {

// uint8 [R, C, width]; undefined when every place is valid.
at::Tensor mask_of_blocks(const at::Tensor& x_RLD, const at::Tensor& mask_RL, int64_t missing,
                          int64_t blocks) {
  if (!mask_RL.defined() && missing == 0) return {};
  at::Tensor mask = mask_RL.defined() ? mask_RL
                                      : at::ones({x_RLD.size(0), x_RLD.size(1)},
                                                 x_RLD.options().dtype(at::kByte));
  return at::constant_pad_nd(mask, {0, missing}).unflatten(1, {blocks, -1});
}

}  // namespace

TokenBlocks cut_into_blocks(const at::Tensor& x_RLD, const at::Tensor& mask_RL, int64_t width,
                            bool has_cls) {
  const int64_t cls = has_cls ? 1 : 0, rows = x_RLD.size(0), length = x_RLD.size(1) - cls;
  const int64_t blocks = (length + width - 1) / width, missing = blocks * width - length;
  const at::Tensor tokens_RLD = x_RLD.narrow(1, cls, length);
  TokenBlocks cut;
  cut.x_BLD = at::constant_pad_nd(tokens_RLD, {0, 0, 0, missing}).unflatten(1, {blocks, width});
  const at::Tensor mask_RCL = mask_of_blocks(
      tokens_RLD, mask_RL.defined() ? mask_RL.narrow(1, cls, length) : mask_RL, missing, blocks);
  const auto numbers = x_RLD.options().dtype(at::kFloat);
  if (mask_RCL.defined()) {
    const at::Tensor count_RC = mask_RCL.sum(2).to(at::kFloat);
    const at::Tensor all_R = count_RC.sum(1);
    cut.weight_RC = count_RC / all_R.clamp_min(1).unsqueeze(1);
    if (has_cls) cut.weight_RC.select(1, 0).add_(all_R.eq(0));  // CLS is there without a token
    cut.mask_BL = mask_RCL.flatten(0, 1).clone();
  } else {
    cut.weight_RC = at::full({rows, blocks}, 1.0 / static_cast<double>(blocks), numbers);
  }
  if (has_cls) {
    const at::Tensor front = x_RLD.narrow(1, 0, 1).unsqueeze(1).expand({rows, blocks, 1, -1});
    cut.x_BLD = at::cat({front, cut.x_BLD}, 2);
    if (cut.mask_BL.defined()) cut.mask_BL = at::constant_pad_nd(cut.mask_BL, {1, 0}, 1);
  } else if (cut.mask_BL.defined()) {
    cut.mask_BL.select(1, 0).fill_(1);
  }
  cut.x_BLD = cut.x_BLD.flatten(0, 1);
  return cut;
}

at::Tensor mean_of_blocks(const at::Tensor& pooled_BD, const at::Tensor& weight_RC) {
  return (pooled_BD.view({weight_RC.size(0), weight_RC.size(1), -1}) * weight_RC.unsqueeze(2))
      .sum(1);
}

}  // namespace lra::models
