// Attention rollout (Abnar and Zuidema 2020, arXiv:2005.00928; figure 5 of Tay et al. 2021): the
// parts of the input from which the attention of the last layer's query comes.
//
// Per layer: the mean A of the heads, mixed with the identity, which stands for the residual
// connection, M = (A + I) / 2, rows divided by their sum. Rollout is the row of the query in M_N
// ... M_2 M_1. The query is the row that the classifier reads: CLS if the model has one, the first
// token with `first` pooling, and the mean of all rows with `mean` pooling. The row is multiplied
// from the last layer down, so that only tiles of A exist.
#pragma once

#include <vector>

#include "analysis/attention_weights.h"
#include "data/png_image.h"
#include "records/analysis_record.h"

namespace lra::analysis {

// Rollout of one example: tokens int32 [1, L] -> float64 [S]; position 0 is CLS where there is one.
// Sums to one. `pooling` is that of ModelConfig.
at::Tensor rollout(const AttentionWeights& attention, const at::Tensor& tokens_1L,
                   const std::string& pooling);

// Figures of a rollout row: everything but index, label, prediction and picture, the texts of `top`
// left empty. `pixels` are an image's gray values, else empty.
RolloutExample rollout_figures(const at::Tensor& row_S, bool has_cls,
                               std::span<const uint8_t> pixels, int64_t num_top);

// The weights of the tokens: next to the image for images of side x side pixels, else as lines of
// cells in reading order.
ColourImage rollout_picture(const at::Tensor& row_S, bool has_cls, std::span<const uint8_t> pixels,
                            int64_t side);

}  // namespace lra::analysis
