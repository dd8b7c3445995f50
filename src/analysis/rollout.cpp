#include "analysis/rollout.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/heat_map.h"
#include "base/error.h"
#include "ops/product.h"

namespace lra::analysis {
namespace {

constexpr int kPictureSide = 256;  // of an image, about
constexpr int64_t kCellsPerLine = 128;
constexpr int kCell = 8;  // pixels of a token's cell

// r M of one layer; r float64 [S].
at::Tensor one_layer(const AttentionWeights& attention, int64_t layer, const at::Tensor& x_1SD,
                     const at::Tensor& r_S) {
  // A row without any attention keeps its half of the identity.
  const at::Tensor sums_S = attention.row_sums(layer, x_1SD).to(at::kDouble).mean(0);
  const at::Tensor scaled_S = r_S / (sums_S + 1);
  at::Tensor out_S = scaled_S.clone();
  attention.for_each_tile(layer, x_1SD, [&](const WeightTile& tile) {
    const at::Tensor a_QK = tile.weights_HQK.to(at::kDouble).mean(0);
    const at::Tensor r_Q = scaled_S.narrow(0, tile.first_query, a_QK.size(0));
    out_S.narrow(0, tile.first_key, a_QK.size(1)) +=
        ops::product(r_Q.unsqueeze(0), a_QK).squeeze(0);
  });
  return out_S;
}

// Weights of the tokens without CLS, which sum to one.
std::vector<double> token_weights(const at::Tensor& row_S, bool has_cls) {
  const at::Tensor row = row_S.contiguous();
  const double* data = row.const_data_ptr<double>();
  std::vector<double> weights(data + (has_cls ? 1 : 0), data + row.size(0));
  double sum = 0;
  for (const double w : weights) sum += w;
  for (double& w : weights) w /= sum > 0 ? sum : 1;
  return weights;
}

// The first of equal ones first.
std::vector<RolloutToken> largest(const std::vector<double>& weights, int64_t count) {
  std::vector<RolloutToken> tokens;
  for (const double weight : weights) {
    tokens.push_back(
        {.position = static_cast<int64_t>(tokens.size()), .text = "", .weight = weight});
  }
  std::ranges::stable_sort(tokens, std::ranges::greater(), &RolloutToken::weight);
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(count)));
  return tokens;
}

}  // namespace

at::Tensor rollout(const AttentionWeights& attention, const at::Tensor& tokens_1L,
                   const std::string& pooling) {
  const at::NoGradGuard no_grad;
  const auto inputs = attention.mixer_inputs(tokens_1L);
  const int64_t positions = inputs[0].size(1);
  at::Tensor r_S = at::zeros({positions}, at::kDouble);
  if (pooling == "mean") {
    r_S.fill_(1.0 / static_cast<double>(positions));
  } else {
    r_S[0] = 1;
  }
  for (int64_t layer = attention.num_layers() - 1; layer >= 0; --layer) {
    r_S = one_layer(attention, layer, inputs[static_cast<size_t>(layer)], r_S);
  }
  return r_S / r_S.sum();
}

RolloutExample rollout_figures(const at::Tensor& row_S, bool has_cls,
                               std::span<const uint8_t> pixels, int64_t num_top) {
  const std::vector<double> weights = token_weights(row_S, has_cls);
  RolloutExample example;
  if (has_cls) example.cls_weight = row_S[0].item<double>();
  for (const double w : weights) example.entropy -= w > 0 ? w * std::log(w) : 0;
  if (weights.size() > 1) example.entropy /= std::log(static_cast<double>(weights.size()));
  example.top = largest(weights, num_top);
  if (pixels.empty()) return example;
  LRA_CHECK_EQ(pixels.size(), weights.size());
  double mean = 0, weight = 0, count = 0;
  for (const uint8_t gray : pixels) mean += gray;
  mean /= static_cast<double>(pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) {
    if (pixels[i] <= mean) continue;
    weight += weights[i];
    count += 1;
  }
  example.bright_weight = std::min(1.0, weight);
  example.bright_pixels = count / static_cast<double>(pixels.size());
  return example;
}

ColourImage rollout_picture(const at::Tensor& row_S, bool has_cls, std::span<const uint8_t> pixels,
                            int64_t side) {
  const std::vector<double> weights = token_weights(row_S, has_cls);
  const double most = *std::max_element(weights.begin(), weights.end());
  const Colours colours{.scale = ColourScale::kSequential, .low = 0, .high = most};
  if (side == 0) {
    const auto columns = std::min<int64_t>(kCellsPerLine, static_cast<int64_t>(weights.size()));
    return heat_map(weights, columns, colours, kCell);
  }
  const int cell = std::max(1, kPictureSide / static_cast<int>(side));
  const std::vector<double> grays(pixels.begin(), pixels.end());
  return side_by_side(
      heat_map(grays, side, {.scale = ColourScale::kGray, .low = 0, .high = 255}, cell),
      heat_map(weights, side, colours, cell));
}

}  // namespace lra::analysis
