// The kernels of this room on a CUDA device: the contracts of their headers, for arrays in the
// memory of the device. Each queues its work on a stream and returns. float and Bf16; same bits at
// every call. Needs compute capability 8.0 (Ampere) or later.
//
// Products of attention run on tensor cores: those of Bf16 in one instruction, those of float as
// three products of TF32 parts (hi hi + hi lo + lo hi), which keeps the error that
// kernels/attention/attention.h promises.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/adam/adam.h"
#include "kernels/attention/attention.h"
#include "kernels/convolution/short_convolution.h"
#include "kernels/feature_attention/feature_attention.h"
#include "kernels/pointwise/batch_norm.h"
#include "kernels/pointwise/gate.h"
#include "kernels/pointwise/layer_norm.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/rotation.h"
#include "kernels/scan/diagonal_scan.h"
#include "kernels/scan/gated_scan.h"
#include "kernels/scan/held_pairs.h"
#include "kernels/scan/matrix_scan.h"
#include "kernels/scan/selective_scan.h"
#include "kernels/scan/state_scan.h"
#include "kernels/sorting/hash_buckets.h"

namespace lra::kernels::cuda {

using Stream = void*;  // a cudaStream_t

// The largest width of a head in attention, by softmax or by feature maps.
inline constexpr int64_t kMaxHeadDim = 128;

template <typename T>
void gelu_dropout(int64_t count, const T* x, T* y, const Dropout& dropout, Stream stream);
template <typename T>
void gelu_dropout_backward(int64_t count, const T* x, const T* dy, T* dx, T* y,
                           const Dropout& dropout, Stream stream);
// The same of `rows` of `columns` elements, if takes_gelu_sums(), and sums of dx over runs of rows
// in their order: sums [gelu_sums(rows), columns]; y is not null.
template <typename T>
bool takes_gelu_sums(int64_t columns, const T* x, const T* dy);
int64_t gelu_sums(int64_t rows);
template <typename T>
void gelu_dropout_backward_and_sums(int64_t rows, int64_t columns, const T* x, const T* dy, T* dx,
                                    T* y, float* sums, const Dropout& dropout, Stream stream);
template <typename T>
void dropout_add(int64_t count, const T* residual, const T* x, T* y, const Dropout& dropout,
                 Stream stream);
template <typename T>
void apply_dropout(int64_t count, const T* x, T* y, const Dropout& dropout, Stream stream);

// kernels/pointwise/rotation.h, for at most 64 tracks.
template <typename T>
void rotate(const Rotation& p, const T* from, T* to, Stream stream);

// kernels/pointwise/gate.h
template <typename T>
void gate_forward(const Gate<T>& p, T* y, Stream stream);
template <typename T>
void gate_backward(const Gate<T>& p, const T* grad, const GateGradients<T>& to, Stream stream);

// kernels/convolution/short_convolution.h. The scratch holds short_convolution_scratch(problem)
// floats, overwritten.
template <typename T>
void short_convolution_forward(const ShortConvolution<T>& p, T* y, Stream stream);
template <typename T>
int64_t short_convolution_scratch(const ShortConvolution<T>& p);
template <typename T>
void short_convolution_backward(const ShortConvolution<T>& p, const T* grad, T* grad_x,
                                float* grad_parameters, float* scratch, Stream stream);

// With `norm`, one double on the device, a gradient of which it exceeds `clip_norm` is scaled by
// clip_norm / norm as well.
void adam_step(int64_t count, float* parameters, const float* gradients, float* m, float* v,
               const AdamStep& step, const double* norm, double clip_norm, Stream stream);
// The root of the sum of squares. `norm`: one double on the device, overwritten; infinite or NaN
// when an element is. `scratch` holds sum_of_squares_parts(count) doubles.
int64_t sum_of_squares_parts(int64_t count);
void gradient_norm(int64_t count, const float* x, double* scratch, double* norm, Stream stream);

template <typename T>
void layer_norm_forward(const LayerNormForward<T>& p, Stream stream);
// `scratch` holds layer_norm_scratch(rows, groups columns) floats.
int64_t layer_norm_scratch(int64_t rows, int64_t weights);
template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p, float* scratch, Stream stream);

// kernels/pointwise/batch_norm.h, with the number of valid rows in memory of the device. `scratch`
// holds batch_norm_scratch(rows, columns) floats, overwritten. `beside` [rows, columns] is added to
// dx, unless it is null.
int64_t batch_norm_scratch(int64_t rows, int64_t columns);
template <typename T>
void batch_norm_forward(const BatchNormForward<T>& p, int64_t* count, float* scratch,
                        Stream stream);
template <typename T>
void batch_norm_backward(const BatchNormBackward<T>& p, const int64_t* count, const T* beside,
                         float* scratch, Stream stream);

template <typename T>
void hash_buckets(const HashShape& shape, const HeadView<const T>& x, const float* rotations,
                  const uint8_t* mask, int32_t* buckets, Stream stream);

// rotations [heads, rounds, count]: ops/sorted_runs.h.
void draw_rotations(int64_t heads, int64_t rounds, int64_t count, uint64_t key, float* rotations,
                    Stream stream);

// noise [planes, blocks, blocks]: ops/sinkhorn.h.
void gumbel_noise(int64_t planes, int64_t blocks, uint64_t key, float* noise, Stream stream);

// Sinkhorn normalization of ops/sinkhorn.h: matrices [planes, size, size], `heads` for each
// example.
struct SinkhornMatrices {
  int64_t planes = 0, heads = 1, size = 0, iterations = 1;
  const float* logits = nullptr;
  const bool* valid = nullptr;  // [planes / heads, size]; null: all
  // The logarithms of what each iteration divides rows and columns by, [iterations, 2, planes,
  // size], which the forward pass writes.
  float* scalings = nullptr;
};
void sinkhorn_forward(const SinkhornMatrices& p, float* matrix, Stream stream);
// `scratch` holds [2, planes, size] floats, overwritten.
void sinkhorn_backward(const SinkhornMatrices& p, const float* grad, float* scratch,
                       float* grad_logits, Stream stream);

// Feature attention as in kernels/feature_attention/feature_attention.h; with bfloat16 arrays,
// features are rounded too. `scratch` of either pass holds feature_attention_scratch(problem)
// floats, overwritten; heads are at most kMaxHeadDim wide.
template <typename T>
int64_t feature_attention_scratch(const FeatureAttention<T>& problem);
template <typename T>
void feature_attention_forward(const FeatureAttentionForward<T>& p, float* scratch, Stream stream);
template <typename T>
void feature_attention_backward(const FeatureAttentionBackward<T>& p, float* scratch,
                                Stream stream);

// Parts of kernels/scan/diagonal_scan.h as a convolution, all but the transforms. Its circle of at
// least 2 length places (`size`) holds every lag of either direction, modulo its size. Convolutions
// with other kernels take the same rows and correlations.
struct ScanChannels {  // some channels at a time
  int64_t first = 0, count = 0, size = 0;
  const uint8_t* valid = nullptr;  // [batch, length], in place of lengths; null: those
};
struct ScanParameters {  // as in DiagonalScan
  int64_t channels = 0, modes = 0, planes = 2, directions = 1;
  const float* a = nullptr;
  const float* c = nullptr;
};
// x -> rows [batch, count, size], 0 for padding and from the end of each example on.
template <typename T>
void scan_rows(const DiagonalScan<T>& p, const ScanChannels& of, float* rows, Stream stream);
// rows + skip x -> y [batch, length, channels], in these channels; 0 for padding.
template <typename T>
void scan_positions(const DiagonalScan<T>& p, const ScanChannels& of, const float* rows, T* y,
                    Stream stream);
// Re sum_n c_n a_n^lag of each direction -> kernels [channels, size].
void scan_tables(const ScanParameters& p, int64_t length, int64_t size, float* kernels,
                 Stream stream);
// Complex x, grads [batch, numbers], kernels, lags [numbers]: lags = sum over the batch of grads
// conj(x), then grads *= conj(kernels).
void scan_correlations(int64_t batch, int64_t numbers, const float* x, const float* kernels,
                       float* grads, float* lags, Stream stream);
// lags [channels, size], the sums over examples and positions of grad[t + lag] x[t] -> the
// gradients of a, c and skip, one after another.
void scan_gradients(const ScanParameters& p, int64_t length, int64_t size, const float* lags,
                    float* grads, Stream stream);

// kernels/scan/selective_scan.h, for up to 256 complex states or 1,024 others. The scratch holds
// selective_scan_scratch(problem) floats, overwritten: the states before every 16th position (every
// 8th of more than 128 states, every second of more than 256, twice as many of complex ones) and
// shares of gradients.
template <typename T>
void selective_scan_forward(const SelectiveScan<T>& p, T* y, Stream stream);
template <typename T>
int64_t selective_scan_scratch(const SelectiveScan<T>& p);
template <typename T>
void selective_scan_backward(const SelectiveScanBackward<T>& p, float* scratch, Stream stream);

// kernels/scan/state_scan.h. The scratch holds state_scan_scratch(problem) floats, overwritten.
template <typename T>
void state_scan_forward(const StateScan<T>& p, T* x, Stream stream);
template <typename T>
int64_t state_scan_scratch(const StateScan<T>& p);
template <typename T>
void state_scan_backward(const StateScanBackward<T>& p, float* scratch, Stream stream);

// kernels/scan/matrix_scan.h, for K and V up to 1,024, or K up to 256 with r. The scratch holds
// matrix_scan_scratch(problem) floats, overwritten. Error against fp64
// (tests/simulated_cuda/scan_test.cpp): 4e-6 of the largest |o|, 1e-5 of the largest number of each
// gradient; the gradients of decays are sums over time, whose rounding errors, of the size of the
// products summed, stay where a decay is near 0.
template <typename T>
void matrix_scan_forward(const MatrixScan<T>& p, T* o, Stream stream);
template <typename T>
int64_t matrix_scan_scratch(const MatrixScan<T>& p);
template <typename T>
void matrix_scan_backward(const MatrixScanBackward<T>& p, float* scratch, Stream stream);

// kernels/scan/gated_scan.h.
template <typename T>
void gated_scan_forward(const GatedScan<T>& p, T* h, Stream stream);
template <typename T>
void gated_scan_backward(const GatedScanBackward<T>& p, Stream stream);

// kernels/scan/held_pairs.h: a [2, pairs, channels] and the held c [directions, 2, pairs,
// channels].
void held_pairs(const HeldPairs& p, float* a, float* c, Stream stream);
void held_pairs_backward(const HeldPairsBackward& p, Stream stream);

// ops/scan/damped_poles.h: numbers [directions, states, channels] -> a, of the same shape, c
// [directions, directions, states, channels] and skip [channels].
struct DampedPoles {
  int64_t directions = 1, states = 0, channels = 0;
  const float *delta = nullptr, *alpha = nullptr, *beta = nullptr, *eta = nullptr, *omega = nullptr;
};
void damped_poles(const DampedPoles& of, float* a, float* c, float* skip, Stream stream);
struct DampedPolesBackward {
  DampedPoles problem;
  const float *grad_a = nullptr, *grad_c = nullptr, *grad_skip = nullptr;
  float *delta = nullptr, *alpha = nullptr, *beta = nullptr, *eta = nullptr;  // the gradients
};
void damped_poles_backward(const DampedPolesBackward& b, Stream stream);

// Block lists both ways, as a device wants them: of the key blocks for each query block, and of the
// query blocks for each key block. `by_key` is made on the host.
struct TransposedLists {
  std::vector<int64_t> offsets;       // [lists * key blocks + 1]
  std::vector<int32_t> query_blocks;  // ascending within a row
};
TransposedLists transpose(const BlockLists& blocks, int64_t query_length, int64_t key_length);

// Lists that need no arrays: every block of queries sees the block of keys of its own number, or
// all those with smaller numbers.
enum class ListForm { kListed, kDiagonal, kStairs };
ListForm form_of(const BlockLists& blocks, int64_t query_length, int64_t key_length);

// Blocked attention as in kernels/attention/attention.h. The arrays that `problem.visible.blocks`
// points to must lie in memory of the device, unless its form needs none; so must the two arrays of
// the transposed lists, which the backward pass reads (null without lists).
template <typename T>
void attention_forward(const AttentionProblem& problem, ListForm form,
                       const AttentionForward<T>& args, Stream stream);
struct AttentionScratch {
  const int64_t* key_offsets = nullptr;  // TransposedLists, on the device
  const int32_t* query_blocks = nullptr;
  float* mean = nullptr;         // [B, H, L], overwritten
  float* by_distance = nullptr;  // relative_bias_scratch() floats, overwritten; null for none
};
// Floats of scratch memory for the gradient of a relative bias.
int64_t relative_bias_scratch(const AttentionProblem& problem, ListForm form);
template <typename T>
void attention_backward(const AttentionProblem& problem, ListForm form,
                        const AttentionBackward<T>& args, const AttentionScratch& scratch,
                        Stream stream);

// Adds the keys of another attention to the softmax of `out`, writing over that: arrays [B, L, H,
// E], with the largest score of each row and the sum relative to it, [2, B, H, L].
template <typename T>
struct AttentionMerge {
  int64_t batch = 0, length = 0, heads = 0, width = 0;
  float scale = 1;
  T* out = nullptr;
  float* softmax = nullptr;
  const T* part_out = nullptr;
  const float* part_softmax = nullptr;
};
template <typename T>
void merge_attention(const AttentionMerge<T>& p, Stream stream);

}  // namespace lra::kernels::cuda
