// The elementwise steps of the backward pass: scores become weights after dropout, gradients of
// those weights become gradients of q . k.
#pragma once

#include <cmath>
#include <numbers>

#include "kernels/attention/attention_laplace.h"
#include "kernels/attention/attention_pack.h"
#include "kernels/simd/dot.h"

namespace lra::kernels::LRA_ISA {

// Arguments for one row of a tile.
struct RowStep {
  const uint16_t* lanes = nullptr;
  const uint16_t* kept = nullptr;  // unused without dropout
  float shift = 0, one_over_sum = 0, mean = 0;
};

// What all rows of a problem share.
struct SlopeScales {
  SlopeScales(float scale, float dropout_scale)
      : log2_scale(broadcast(std::abs(scale) * std::numbers::log2e_v<float>)),
        scale(broadcast(scale)),
        kept(broadcast(dropout_scale)),
        laplace(scale) {}
  const Floats log2_scale, scale, kept;
  const LaplaceWeights laplace;
};

// Sixteen weights of a row after dropout, and the gradients of their q . k.
struct Slopes {
  Floats weight, grad;
};

template <bool kDropout, AttentionWeights kWeights>
class RowSlopes {
 public:
  explicit RowSlopes(const RowStep& step)
      : lanes_(step.lanes),
        kept_(step.kept),
        shift_(broadcast(step.shift)),
        one_over_sum_(broadcast(step.one_over_sum)),
        mean_(broadcast(step.mean)) {}

  Slopes at(int64_t v, const SlopeScales& scales, Floats score, Floats grad) const {
    const Floats weight = keep(lanes_[v], weight_of(score, scales));
    Floats dropped = weight;
    if constexpr (kDropout) {
      dropped = keep(kept_[v], weight * scales.kept);
      grad = keep(kept_[v], grad * scales.kept);
    }
    if constexpr (kWeights == AttentionWeights::kLaplace) {
      return {dropped, keep(lanes_[v], scales.laplace.slope(score) * scales.scale * grad)};
    } else {
      return {dropped, (weight * scales.scale) * (grad - mean_)};
    }
  }

 private:
  Floats weight_of(Floats score, const SlopeScales& scales) const {
    if constexpr (kWeights == AttentionWeights::kLaplace) {
      return scales.laplace.weight(score);
    } else {
      return exp2((score - shift_) * scales.log2_scale) * one_over_sum_;
    }
  }

  const uint16_t *lanes_, *kept_;
  const Floats shift_, one_over_sum_, mean_;
};

// Rows of scores and of gradients of weights, the second of two `second` floats after the first; if
// `keeps_grads`, the gradients of q . k take their place.
struct ScoreRows {
  const float* scores = nullptr;
  float* grads = nullptr;
  int64_t second = 0;
  bool keeps_grads = false;
};

// Makes row `row` of a finished tile, and row + 1 if words hold two.
template <bool kDropout, AttentionWeights kWeights, typename Products>
void differentiate_rows(const RowStep (&steps)[Products::kWordDepth], const SlopeScales& of_all,
                        int64_t vectors, const ScoreRows& rows, const FinishedTile& tile,
                        int64_t row) {
  const SlopeScales scales = of_all;
  const ScoreRows from = rows;
  const FinishedTile to = tile;
  const RowSlopes<kDropout, kWeights> first(steps[0]), second(steps[Products::kWordDepth - 1]);
  for (int64_t v = 0; v < vectors; ++v) {
    const float* scores = from.scores + v * kLanes;
    float* grads = from.grads + v * kLanes;
    const Slopes a = first.at(v, scales, load(scores), load(grads));
    if constexpr (Products::kWordDepth == 1) {
      Products::store_slopes(to, row, v, a);
    } else {
      const Slopes b = second.at(v, scales, load(scores + from.second), load(grads + from.second));
      if (from.keeps_grads) {  // the first last: both rows may be one
        store(grads + from.second, b.grad);
        store(grads, a.grad);
      }
      Products::store_slopes(to, row, v, a, b);
    }
  }
}

}  // namespace lra::kernels::LRA_ISA
