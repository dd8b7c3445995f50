#include "models/receptive_field.h"

#include <algorithm>

#include "layers/on_device.h"

namespace lra::models {
namespace {

// The blocks that are computed, on the CPU.
struct Cuts {
  std::vector<int64_t> places;   // row * C + number in the row
  std::vector<int32_t> lengths;  // tokens
  std::vector<float> weights;
};

Cuts cuts_of(const at::Tensor& lengths_R, int64_t width, int64_t blocks, bool has_cls) {
  Cuts cuts;
  const at::Tensor lengths = lengths_R.contiguous();
  for (int64_t row = 0; row < lengths.numel(); ++row) {
    const int64_t tokens = lengths.const_data_ptr<int32_t>()[row] - (has_cls ? 1 : 0);
    for (int64_t first = 0; first == 0 || first < tokens; first += width) {
      const int64_t count = std::clamp<int64_t>(tokens - first, 0, width);
      cuts.places.push_back(row * blocks + first / width);
      cuts.lengths.push_back(static_cast<int32_t>(count + (has_cls ? 1 : 0)));
      // CLS is there without a token.
      cuts.weights.push_back(tokens > 0 ? static_cast<float>(count) / static_cast<float>(tokens)
                                        : static_cast<float>(has_cls));
    }
  }
  return cuts;
}

}  // namespace

int64_t num_blocks(const at::Tensor& lengths_R, int64_t rows, int64_t length, int64_t width) {
  if (!lengths_R.defined()) return rows * ((length + width - 1) / width);
  return (lengths_R + (width - 1)).floor_divide(width).clamp_min(1).sum().item<int64_t>();
}

TokenBlocks cut_into_blocks(const at::Tensor& x_RLD, const at::Tensor& lengths_R, int64_t width,
                            bool has_cls) {
  const int64_t cls = has_cls ? 1 : 0, rows = x_RLD.size(0), length = x_RLD.size(1) - cls;
  const int64_t blocks = (length + width - 1) / width, missing = blocks * width - length;
  at::Tensor x = at::constant_pad_nd(x_RLD.narrow(1, cls, length), {0, 0, 0, missing})
                     .unflatten(1, {blocks, width});
  if (has_cls) {
    x = at::cat({x_RLD.narrow(1, 0, 1).unsqueeze(1).expand({rows, blocks, 1, -1}), x}, 2);
  }
  x = x.flatten(0, 1);
  const bool all_valid = !lengths_R.defined() && missing == 0;
  if (all_valid) return {.x_KLD = x, .rows = rows, .blocks = blocks};
  const Cuts cuts =
      cuts_of(lengths_R.defined() ? lengths_R : at::full({rows}, x_RLD.size(1), at::kInt), width,
              blocks, has_cls);
  const auto moved = [&](const at::Tensor& host) { return layers::on_device(host, x.device()); };
  const at::Tensor lengths_K = at::tensor(cuts.lengths, at::kInt);
  TokenBlocks cut{.x_KLD = x,
                  .padding = {mask_of_lengths(lengths_K, width + cls, x.device()), lengths_K},
                  .rows = rows,
                  .blocks = blocks,
                  .places_K = moved(at::tensor(cuts.places, at::kLong)),
                  .weight_K1 = moved(at::tensor(cuts.weights, at::kFloat).unsqueeze(1))};
  if (lengths_K.numel() < rows * blocks) cut.x_KLD = x.index_select(0, cut.places_K);
  return cut;
}

at::Tensor mean_of_blocks(const at::Tensor& pooled_KD, const TokenBlocks& blocks) {
  const int64_t dim = pooled_KD.size(1);
  if (!blocks.places_K.defined()) return pooled_KD.view({blocks.rows, -1, dim}).mean(1);
  return at::zeros({blocks.rows * blocks.blocks, dim}, pooled_KD.options())
      .index_add(0, blocks.places_K, pooled_KD * blocks.weight_K1)
      .view({blocks.rows, -1, dim})
      .sum(1);
}

}  // namespace lra::models
