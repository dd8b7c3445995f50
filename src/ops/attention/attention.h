// Softmax attention over chosen blocks of keys, memory-linear in the length:
// kernels/attention/attention.h as a differentiable operator.
//
// Exact, local, sparse, Longformer, BigBird, Sinkhorn and Reformer attention differ only in
// AttentionPattern. Shapes are those of a projection's output, [B, L, H, E]; nothing is transposed
// or copied. float32, float64 or bfloat16; the logsumexp of bfloat16 is float32.
#pragma once

#include <vector>

#include "kernels/attention/attention.h"
#include "ops/libtorch.h"

namespace lra::ops {

using kernels::AttentionWeights;

// Keys that a query may see. Default: all.
struct AttentionPattern {
  // Compressed rows of key blocks per query block (kernels::BlockLists): offsets int64 [rows + 1],
  // key_blocks int32. rows = number of query blocks, times 1, H (a list per head) or B * H (per
  // batch element and head). Undefined: every block.
  Tensor offsets, key_blocks;
  int64_t query_block = 0, key_block = 0;
  // Key j is seen by query i when i - left <= j <= i + right; -1: no limit; right = 0: causal.
  int64_t left = -1, right = -1;
  // Replaces all of these and the masks, for self-attention: one round of ops::sorted_runs. Dropout
  // then decides by the positions of query and key in that order. Inputs must be finite.
  Tensor runs = {};
};

struct AttentionMask {
  Tensor keys;     // uint8 [B, S], 1 = valid; undefined: all
  Tensor queries;  // uint8 [B, L], 1 = valid; rows with 0 give output 0; undefined: all
};

struct AttentionDropout {
  double rate = 0;
  uint64_t key = 0;
};

// q [B, L, H, E], k [B, S, H, E], v [B, S, H, V] (last axis contiguous, other strides free) ->
// [B, L, H, V]. Weights are softmax(scale q k^T + bias), or the Laplace function of it; scale 0
// means 1 / sqrt(E). A query without a visible key gives 0. `bias` is float32, also with bfloat16
// inputs (float64 with float64); undefined means none. It is a table [H, L, S] (of a larger one
// the first rows and columns count), or relative, [H, L + S - 1]: number j - i + L - 1 for query i
// and key j. Neither a bias nor the Laplace function can be combined with runs.
Tensor attention(const Tensor& q_BLHE, const Tensor& k_BSHE, const Tensor& v_BSHE,
                 const AttentionPattern& pattern = {}, const AttentionMask& mask = {},
                 const AttentionDropout& dropout = {}, double scale = 0,
                 const Tensor& bias_HLS = {},
                 AttentionWeights weights = AttentionWeights::kSoftmax);

// Attention to some of the keys: its output, and the logsumexp of its scores, -infinity for a query
// that saw none. Both are differentiable.
struct PartialAttention {
  Tensor out_BLHE, logsumexp_BHL;
};
PartialAttention partial_attention(const Tensor& q_BLHE, const Tensor& k_BSHE, const Tensor& v_BSHE,
                                   const AttentionPattern& pattern = {},
                                   const AttentionMask& mask = {},
                                   const AttentionDropout& dropout = {}, double scale = 0);

// The rows n of an axis with first <= n mod period < end; all with the period 0.
struct PeriodicRows {
  int64_t period = 0, first = 0, end = 0;

  // These rows of [B, S, ...]: [B, S', ...].
  Tensor of(const Tensor& t) const;
  // Adds [B, S', ...] to these rows of `sum`.
  void add_to(const Tensor& sum, const Tensor& t) const;
};

// Some of the keys that a query may see: k and v [B, S, H, E], or only some of their rows.
struct AttentionPart {
  Tensor k_BSHE, v_BSHE;
  AttentionPattern pattern = {};  // of the rows taken, S' of them, as are mask and dropout
  AttentionMask mask = {};
  AttentionDropout dropout = {};
  PeriodicRows rows = {};
};

// Attention of q [B, L, H, E] to the keys of all parts in one softmax; a key that two parts
// show counts twice. A query that no part gives a key gets 0. Scale 1 / sqrt(E). Of the outputs
// only the joint one is kept for the gradient.
Tensor joint_attention(const Tensor& q_BLHE, const std::vector<AttentionPart>& parts);

// Self-attention on one packed projection qkv [B, L, 3, H, E] (queries, keys, values): the same
// numbers, and the gradient comes back packed, ready for one product with the projection's weight.
Tensor packed_attention(const Tensor& qkv_BL3HE, const AttentionPattern& pattern = {},
                        const AttentionMask& mask = {}, const AttentionDropout& dropout = {},
                        double scale = 0);

// The pattern of contiguous blocks that see only themselves.
AttentionPattern diagonal_pattern(int64_t length, int64_t block);

}  // namespace lra::ops
