// Blocked softmax attention, memory-linear in the length: one kernel for exact, local, sparse,
// Longformer, BigBird, Sinkhorn (after its sort) and Reformer (after its sort) attention.
//
// Tiles of scores are computed, used and discarded with the running softmax of Dao et al.
// (FlashAttention, NeurIPS 2022, algorithms 1 and 4); no L x S array exists in any pass. The
// mechanisms differ only in the keys that a query may see: see AttentionVisibility.
//
// Error of the float kernels against the double reference, for inputs of order one: output and
// logsumexp 1e-5 of the largest value, gradients 1e-4 of the largest value (attention_test.cpp).
// With bfloat16 arrays, scores, weights and sums are float; if the processor multiplies pairs or
// tiles of bfloat16, the weights and the gradients of scores are rounded before they enter
// products. Against the double reference on the same inputs: output and logsumexp 2^-7 of the
// largest value, gradients 2^-6. The result has the same bits at any number of threads.
//
// A weight is computed from the difference of two scores, which is then scaled, so scores of any
// size that float holds give finite weights. If a product of a query and a key is not finite, a row
// that sees it is NaN.
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"
#include "kernels/sorting/sorted_runs.h"

namespace lra::kernels {

// A [B, H, L, E] array seen through strides counted in elements; the last axis is contiguous. So
// the [B, L, H, E] output of a projection is {data, L * H * E, E, H * E}.
template <typename T>
struct HeadView {
  T* data = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;

  constexpr T* row(int64_t batch, int64_t head, int64_t index) const {
    return data + batch * batch_stride + head * head_stride + index * row_stride;
  }
};

// Numbers added to the scores, a table [H, L, S] for all batch elements, seen through strides
// counted in elements; the last axis is contiguous. With the row stride -1 it is a number for each
// distance of key and query, [H, L + S - 1], and data points to that of distance 0.
template <typename T>
struct ScoreBias {
  T* data = nullptr;
  int64_t head_stride = 0;
  int64_t row_stride = 0;

  constexpr T* row(int64_t head, int64_t query) const {
    return data + head * head_stride + query * row_stride;
  }
  constexpr bool is_relative() const { return row_stride == -1; }
};

struct AttentionShape {
  int64_t batch = 0;         // B
  int64_t heads = 0;         // H
  int64_t query_length = 0;  // L
  int64_t key_length = 0;    // S
  int64_t head_dim = 0;      // E, of queries and keys
  int64_t value_dim = 0;     // of values and outputs; 0: E

  constexpr int64_t width_of_values() const { return value_dim == 0 ? head_dim : value_dim; }
};

// How scores become weights: softmax, or each by itself, 0.5 (1 + erf((score - sqrt(1/2)) sqrt(2
// pi))), the Laplace function of Mega (Ma et al. 2023, arXiv:2209.10655, equation 16). Then the
// largest score is 0 and the sum 1 in rows that see a key, the scale is positive, rows are in their
// own order and no gradient of a logsumexp exists.
enum class AttentionWeights { kSoftmax, kLaplace };

// Blocks of keys that each block of queries may see, as compressed sparse rows: one list for all
// planes, one per head, or one per plane b * H + h. Row r = list * num_query_blocks + query block
// has the key blocks key_blocks[offsets[r]] .. key_blocks[offsets[r + 1] - 1], each at most once,
// in any order. num_query_blocks is ceil(L / query_block); the last block of either kind may be
// short.
struct BlockLists {
  int64_t query_block = 0;
  int64_t key_block = 0;
  int64_t lists = 1;                    // 1, H or B * H; plane p uses list p % lists
  const int64_t* offsets = nullptr;     // [lists * num_query_blocks + 1]
  const int32_t* key_blocks = nullptr;  // [the last offset]
};

// Query i of batch element b sees key j when all the rules allow it. A query that sees no key gets
// output 0, the largest score -infinity, sum 0 and no gradient.
struct AttentionVisibility {
  const BlockLists* blocks = nullptr;   // null: every block
  int64_t left = -1;                    // j >= i - left; -1: no limit
  int64_t right = -1;                   // j <= i + right; -1: no limit; 0: causal
  const uint8_t* key_mask = nullptr;    // [B, S], 1 = valid; null: all valid
  const uint8_t* query_mask = nullptr;  // [B, L], 1 = valid; null: all valid
  // Replaces all the rules above, for L = S: rows in another order. Then i and j, here and in
  // dropout, are positions in that order, and the rows of all tensors must be finite.
  const SortedRuns* runs = nullptr;
};

struct AttentionProblem {
  AttentionShape shape;
  AttentionVisibility visible;
  double scale = 1;  // scores are scale * q . k + bias
  // Attention weight (i, j) of plane b * H + h is dropped when dropout_value(dropout_key, plane, i,
  // j) < dropout_threshold(dropout_rate), else multiplied by dropout_scale (base/rng.h).
  double dropout_rate = 0;  // in [0, 1)
  uint64_t dropout_key = 0;
  AttentionWeights weights = AttentionWeights::kSoftmax;
};

// The two numbers that define the softmax of each row: W arrays [B, H, L], contiguous. The weight
// of a score is exp(|scale| (score / |scale| - largest)) / sum. A single logsumexp, |scale| largest
// + log(sum), could not replace both: at 1e4 float resolves it to 1e-3, and all weights would be
// off by that.
template <typename W>
struct SoftmaxRows {
  W* largest = nullptr;  // of score / |scale|: of q . k, for a positive scale and no bias
  W* sum = nullptr;      // of exp(score - the largest score)
};

// Values of masked keys and queries are never used, so they may be anything, NaN included.
template <typename T>
struct AttentionForward {
  HeadView<const T> q, k, v;     // [B, H, L, E], [B, H, S, E], [B, H, S, value_dim]
  HeadView<T> out;               // [B, H, L, value_dim], overwritten; must not overlap an input
  SoftmaxRows<Wide<T>> softmax;  // overwritten
  // There is no bias if it has no data. With a bias, scale must be positive and rows in their own
  // order.
  ScoreBias<const Wide<T>> bias = {};
};

template <typename T>
struct AttentionBackward {
  HeadView<const T> q, k, v, out, grad_out;
  // Softmax rows of the forward pass, as `out` is, or of one softmax over these keys and others;
  // then the gradients are this call's share of those of the whole. A row that sees none of these
  // keys may have seen others.
  SoftmaxRows<const Wide<T>> softmax;
  HeadView<T> grad_q, grad_k, grad_v;  // overwritten; must not overlap an input or each other
  // Gradient of |scale| largest + log(sum) [B, H, L], contiguous; null: none. Entries of queries
  // that see no key are ignored.
  const Wide<T>* grad_logsumexp = nullptr;
  // Bias of the forward pass, and its gradient of the same kind, overwritten: the sum over the
  // batch, in its order. A relative one is first summed over the rows of each tile of queries.
  ScoreBias<const Wide<T>> bias = {};
  ScoreBias<Wide<T>> grad_bias = {};
};

// T is float, Bf16 or double; double always runs the reference. A malformed problem (a size below
// 1, a block index out of range, a rate outside [0, 1)) is a failed check.
template <typename T>
void attention_forward(const AttentionProblem& problem, const AttentionForward<T>& args);
template <typename T>
void attention_backward(const AttentionProblem& problem, const AttentionBackward<T>& args);

// The implementations behind the two functions above.
LRA_DECLARE_KERNELS(template <typename T> void attention_forward(const AttentionProblem& problem,
                                                                 const AttentionForward<T>& args);
                    template <typename T>
                    void attention_backward(const AttentionProblem& problem,
                                            const AttentionBackward<T>& args);)

// The products of scores and sums on pairs, and on tiles; those of the other implementations are in
// float.
namespace avx512_bf16 {
void attention_forward(const AttentionProblem& problem, const AttentionForward<Bf16>& args);
void attention_backward(const AttentionProblem& problem, const AttentionBackward<Bf16>& args);
}  // namespace avx512_bf16
LRA_DECLARE_TILES(void attention_forward(const AttentionProblem& problem,
                                         const AttentionForward<Bf16>& args))
LRA_DECLARE_TILES(void attention_backward(const AttentionProblem& problem,
                                          const AttentionBackward<Bf16>& args))

}  // namespace lra::kernels
