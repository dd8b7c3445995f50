#include "analysis/embeddings.h"

#include <algorithm>
#include <cmath>

#include "analysis/heat_map.h"
#include "base/error.h"
#include "ops/product.h"

namespace lra::analysis {
namespace {

constexpr int64_t kMostPositions = 4096;
constexpr int64_t kMostApart = 8;
constexpr int kTokenCell = 3;

std::vector<double> numbers_of(const at::Tensor& matrix) {
  const at::Tensor wide = matrix.to(at::kDouble).contiguous();
  const double* data = wide.const_data_ptr<double>();
  return {data, data + wide.numel()};
}

// The mean cosine of pairs of rows (first, first + apart * step) for apart = 1, 2, .. 8, over all
// lines of `length` rows: line n begins at row n * line_step.
struct Lines {
  int64_t count, length, line_step, step;
};
std::vector<double> means_by_distance(const std::vector<double>& cosines, const Lines& lines) {
  const int64_t size = lines.count * lines.length;
  std::vector<double> means;
  for (int64_t apart = 1; apart <= std::min(kMostApart, lines.length - 1); ++apart) {
    double sum = 0;
    for (int64_t line = 0; line < lines.count; ++line) {
      for (int64_t place = 0; place + apart < lines.length; ++place) {
        const int64_t first = line * lines.line_step + place * lines.step;
        sum += cosines[static_cast<size_t>(first * size + first + apart * lines.step)];
      }
    }
    means.push_back(sum / static_cast<double>(lines.count * (lines.length - apart)));
  }
  return means;
}

// Least number off the diagonal; 0 for a single row.
double least_between(const at::Tensor& matrix) {
  if (matrix.size(0) < 2) return 0;
  const at::Tensor others = matrix.masked_fill(at::eye(matrix.size(0), at::kBool), INFINITY);
  return others.min().item<double>();
}

// Correlation of similarity with distance over all pairs i < j; nothing when one of them is
// constant.
std::optional<double> correlation_with_distance(const std::vector<double>& values, int64_t n) {
  double count = 0, x_sum = 0, y_sum = 0, xx = 0, yy = 0, xy = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      const auto x = static_cast<double>(j - i);
      const double y = values[static_cast<size_t>(i * n + j)];
      count += 1;
      x_sum += x;
      y_sum += y;
      xx += x * x;
      yy += y * y;
      xy += x * y;
    }
  }
  const double x_spread = xx - x_sum * x_sum / count, y_spread = yy - y_sum * y_sum / count;
  if (count < 2 || !(x_spread > 0) || !(y_spread > 1e-12)) return {};
  return std::clamp((xy - x_sum * y_sum / count) / std::sqrt(x_spread * y_spread), -1.0, 1.0);
}

constexpr Colours kCosines = {.scale = ColourScale::kDiverging, .low = -1, .high = 1};

}  // namespace

at::Tensor cosine_similarity(const at::Tensor& rows_ND) {
  const at::Tensor rows = rows_ND.detach().to(at::kDouble);
  const at::Tensor unit = rows / rows.square().sum(1, true).sqrt().clamp_min(1e-30);
  return ops::product(unit, unit.t()).clamp(-1, 1).to(at::kFloat);
}

Embeddings embeddings_of(const models::SequenceClassifier& model, bool has_cls) {
  const models::Embedding& embedding = model.embedding();
  const bool has_tokens = embedding.tokens().defined();
  if (!has_tokens || !embedding.positions().defined()) {
    throw Error({.where = "embeddings",
                 .what = has_tokens ? "this model adds no encoding of positions"
                                    : "this model takes values, not tokens",
                 .expected = "a model with embeddings of tokens and positions"});
  }
  return {.token_VD = embedding.tokens().detach().cpu(),
          .position_PD = embedding.positions().detach().cpu().slice(0, has_cls ? 1 : 0)};
}

ShownPositions shown_positions(int64_t num_positions, int64_t side) {
  ShownPositions shown;
  if (side == 0) {
    shown.stride = (num_positions + kMostPositions - 1) / kMostPositions;
    shown.indices = at::arange(0, num_positions, shown.stride, at::kLong);
    return shown;
  }
  const auto most = static_cast<int64_t>(std::sqrt(kMostPositions));
  shown.stride = (side + most - 1) / most;
  const at::Tensor line = at::arange(0, side, shown.stride, at::kLong);
  shown.side = line.size(0);
  shown.indices = (line.unsqueeze(1) * side + line.unsqueeze(0)).flatten();
  return shown;
}

EmbeddingsResult embedding_figures(const at::Tensor& token_VV, const at::Tensor& position_PP,
                                   const ShownPositions& shown, bool is_image) {
  EmbeddingsResult result;
  result.vocabulary = token_VV.size(0);
  result.token_min = least_between(token_VV);
  result.position_min = least_between(position_PP);
  const std::vector<double> positions = numbers_of(position_PP);
  result.by_distance = means_by_distance(positions, {1, position_PP.size(0), 0, 1});
  if (!is_image) return result;
  const std::vector<double> tokens = numbers_of(token_VV);
  result.by_intensity = means_by_distance(tokens, {1, result.vocabulary, 0, 1});
  result.intensity_correlation = correlation_with_distance(tokens, result.vocabulary);
  result.vertical = means_by_distance(positions, {shown.side, shown.side, 1, shown.side});
  result.horizontal = means_by_distance(positions, {shown.side, shown.side, shown.side, 1});
  return result;
}

ColourImage token_picture(const at::Tensor& token_VV) {
  return heat_map(numbers_of(token_VV), token_VV.size(1), kCosines, kTokenCell);
}

ColourImage position_picture(const at::Tensor& position_PP, const ShownPositions& shown) {
  // 256 pixels for a text, 265 for an image of 32 x 32: a report takes them, and an eye reads them.
  constexpr int64_t kTiles = 8, kMostInLine = 256;
  const auto step_to = [](int64_t all, int64_t most) { return (all + most - 1) / most; };
  if (shown.side > 0) {
    return tiled_heat_map(numbers_of(position_PP), shown.side, step_to(shown.side, kTiles),
                          kCosines);
  }
  const int64_t step = step_to(position_PP.size(0), kMostInLine);
  const at::Tensor seen_PP = position_PP.slice(0, {}, {}, step).slice(1, {}, {}, step).contiguous();
  return heat_map(numbers_of(seen_PP), seen_PP.size(1), kCosines, 1);
}

}  // namespace lra::analysis
