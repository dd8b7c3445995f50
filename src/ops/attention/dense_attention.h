// Softmax attention by its definition, with explicit L x S arrays, composed of the library's
// operators: the definition of attention, its second derivative, and the oracle of every mixer that
// attends. Shares no code with the kernels.
#pragma once

#include "ops/attention/attention.h"

namespace lra::ops {

// bool [B or 1, H, L, S], B only with lists per batch element: the pairs that block lists and
// window allow.
Tensor pattern_allows(const AttentionPattern& pattern, int64_t heads, int64_t queries,
                      int64_t keys);

// `allowed` restricted to pairs of a valid query and a valid key: [B, H or 1, L, S].
Tensor masks_allow(Tensor allowed, const AttentionMask& mask);

// Factor that attention dropout applies to weight (i, j) of plane b * H + h
// (kernels/attention/attention.h): float64.
Tensor attention_dropout_factors(at::IntArrayRef shape_BHLS, const AttentionDropout& dropout);

// A bias [H, L, S] as it is, and one for each distance, [H, L + S - 1], as such a table; undefined
// remains undefined.
Tensor table_of_bias(const Tensor& bias, int64_t queries, int64_t keys);

// The Laplace function of scores, kernels::AttentionWeights::kLaplace.
Tensor laplace(const Tensor& scores);

// scale q k^T + bias: q [B, L, H, E], k [B, S, H, E], bias [H, L, S] or undefined -> [B, H, L, S].
// Scale 0 means 1 / sqrt(E).
Tensor dense_scores(const Tensor& q, const Tensor& k, double scale = 0, const Tensor& bias = {});

// Weights of the scores over the allowed keys, times v [B, S, H, V] -> [B, L, H, V]; `allowed`
// broadcasts to [B, H, L, S]; rows without a key give 0.
Tensor dense_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& allowed,
                       const AttentionDropout& dropout = {}, double scale = 0,
                       const Tensor& bias = {},
                       AttentionWeights weights = AttentionWeights::kSoftmax);

// logsumexp of the scores over the allowed keys [B, H, L], -infinity without one.
Tensor dense_logsumexp(const Tensor& scores_BHLS, const Tensor& allowed);

}  // namespace lra::ops
