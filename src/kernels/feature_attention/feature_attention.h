// Self-attention by feature maps (Katharopoulos et al. 2020, arXiv:2006.16236, equations 4 to 7):
//
//   o_i = phi(q_i) (sum_j phi(k_j)^T v_j) / (phi(q_i) . sum_j phi(k_j) + eps)
//
// The features are never stored: each pass makes them again, a few rows at a time, from the
// projections. With u_j = (v_j, 1) there is one sum for numerator and denominator,
// Z = sum_j phi(k_j)^T u_j, and its gradient is that of the denominator too.
#pragma once

#include <cstdint>

#include "kernels/choice.h"
#include "kernels/simd/bf16.h"

namespace lra::kernels {

// kElu: elu(x) + 1 (the paper above, equation 7); kRelu: max(x, 0) + offset (Performer's).
enum class FeatureMap { kElu, kRelu };

// Rows of one head whose share of Z is computed by one thread.
inline constexpr int64_t kFeatureRows = 512;

// Numbers of one row of Z, of one feature: the values, the 1, and padding to whole vectors.
constexpr int64_t feature_sum_columns(int64_t width) { return (width + 1 + 15) / 16 * 16; }

template <typename T>
struct FeatureAttention {
  int64_t batch = 0, length = 0, heads = 0, width = 0;
  FeatureMap map = FeatureMap::kElu;
  double offset = 0, eps = 0;
  const T* qkv = nullptr;         // [batch, length, 3, heads, width]
  const uint8_t* mask = nullptr;  // [batch, length], 0: a key that takes no part; null: all do
};

template <typename T>
struct FeatureAttentionForward {
  FeatureAttention<T> problem;
  T* out = nullptr;         // [batch, length, heads, width]
  Wide<T>* sums = nullptr;  // Z, [batch, heads, width, feature_sum_columns(width)]
};

template <typename T>
struct FeatureAttentionBackward {
  FeatureAttention<T> problem;
  // Results of the forward pass.
  const T* out = nullptr;
  const Wide<T>* sums = nullptr;
  const T* grad = nullptr;  // of out
  T* grad_qkv = nullptr;
};

// Writes out and sums. A query whose sum over keys is 0 (no key takes part) gets 0. Masked keys and
// values are not used: they may be anything, NaN included. Error against fp64
// (feature_attention_test.cpp): that of sums of kFeatureRows + length / kFeatureRows terms, and one
// rounding of the result in bfloat16. The same bits at any number of threads: Z is summed in runs
// of kFeatureRows rows, and the runs in their order.
template <typename T>
void feature_attention_forward(const FeatureAttentionForward<T>& p);
// Writes all of grad_qkv. In bfloat16 the share of the denominator is made of the rounded out.
template <typename T>
void feature_attention_backward(const FeatureAttentionBackward<T>& p);

// Rows [begin, end) of one head, at most kFeatureRows.
struct FeatureRows {
  int64_t example = 0, head = 0, begin = 0, end = 0;
};

// Work of an implementation on the rows of one head; each function reads or writes the head's
// [width, feature_sum_columns(width)] numbers of Z or its gradient.
template <typename T>
struct FeatureParts {
  using W = Wide<T>;
  // sums = the rows' share of Z
  void (*sum_features)(const FeatureAttention<T>& p, const FeatureRows& rows, W* sums);
  // out of the rows, given Z
  void (*attend_features)(const FeatureAttention<T>& p, const FeatureRows& rows, const W* sums,
                          T* out);
  // the gradient of the rows' queries, and their share of the gradient of Z
  void (*query_gradients)(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                          const W* sums, W* grad_sums);
  // the gradients of the rows' keys and values, given that of Z
  void (*key_gradients)(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                        const W* grad_sums);
};
LRA_DECLARE_KERNELS(template <typename T> FeatureParts<T> feature_parts();)
LRA_DECLARE_TILES(template <typename T> FeatureParts<T> feature_parts())  // of Bf16

}  // namespace lra::kernels
