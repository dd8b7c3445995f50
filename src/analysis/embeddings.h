// Similarity of embeddings (Tay et al. 2021, figure 4): the cosine of every pair of token
// embeddings, and of every pair of position embeddings, learned or sinusoid.
#pragma once

#include <string>

#include "base/task_shape.h"
#include "data/png_image.h"
#include "models/classifier.h"
#include "ops/libtorch.h"
#include "records/analysis_record.h"

namespace lra::analysis {

// rows [N, D] -> cosines [N, N], float32; a row of zeros is like no other, 0.
at::Tensor cosine_similarity(const at::Tensor& rows_ND);

// Embeddings on the CPU.
struct Embeddings {
  at::Tensor token_VD;     // float32
  at::Tensor position_PD;  // of the tokens: that of CLS is left out
};
Embeddings embeddings_of(const models::SequenceClassifier& model, bool has_cls);

// Positions that matrix and picture show: every stride-th, on images every stride-th row and
// column, so that at most 4096 are left.
struct ShownPositions {
  int64_t stride = 1;
  int64_t side = 0;    // of images, in shown pixels; else 0
  at::Tensor indices;  // int64, ascending
};
ShownPositions shown_positions(int64_t num_positions, int64_t side);

// Computes all figures; names of files stay empty. On images tokens are grays and distances in
// pixels. similarity_PP is that of all positions when `shown` has a stride of 1, else of the shown
// ones, and then distances are counted in shown positions.
EmbeddingsResult embedding_figures(const at::Tensor& token_VV, const at::Tensor& position_PP,
                                   const ShownPositions& shown, bool is_image);

// Colors from -1 to 1. Of positions at most 256 in a line; on images a tile for every position of
// at most eight rows and columns, laid out as the image.
ColourImage token_picture(const at::Tensor& token_VV);
ColourImage position_picture(const at::Tensor& position_PP, const ShownPositions& shown);

}  // namespace lra::analysis
