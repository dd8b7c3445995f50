// Products of feature attention on tiles of bfloat16. Included once by each file that has tiles.
//
// Features are rounded; gradients of outputs, Z and its gradient, in whose products large terms
// cancel, are two operands each: their bfloat16 numbers, and those of what these leave.
#pragma once

#include "kernels/feature_attention/feature_attention_blocks.h"
#include "kernels/gemm/tile_products.h"

namespace lra::kernels::LRA_ISA {

// Counterpart of FloatFeatures in feature_attention_simd.cpp. Depth is padded to steps of 32 by
// zeros.
template <typename Tiles>
class TileFeatures {
 public:
  explicit TileFeatures(const FeatureScratch& scratch)
      : s_(scratch), width_steps_(steps(s_.width)), column_steps_(steps(s_.columns)) {
    thread_local AlignedBuffer space[6];
    AlignedBuffer* next = space;
    rows_ = (next++)->reserve(kFeatureBlock * kTileWords * std::max(width_steps_, column_steps_));
    features_down_ = (next++)->reserve(kBlockWords * s_.stride);
    values_down_ = (next++)->reserve(kBlockWords * s_.columns);
    sums_ = (next++)->reserve(2 * kTileWords * width_steps_ * s_.columns);
    transposed_ = (next++)->reserve(2 * kTileWords * column_steps_ * s_.stride);
    added_ = (next++)->reserve(s_.stride * s_.columns);
  }

  void take_sums(const float* sums) {
    pack_sums(s_.width, s_.columns, width_steps_, sums_,
              [&](int64_t row, int64_t column) { return load(sums + row * s_.columns + column); });
  }
  void take_transposed(const float* sums) {
    pack_sums(s_.width + 1, s_.stride, column_steps_, transposed_,
              [&](int64_t row, int64_t column) {
                alignas(64) float lanes[kLanes] = {};
                for (int64_t n = 0; n < std::min(kLanes, s_.width - column); ++n) {
                  lanes[n] = sums[(column + n) * s_.columns + row];
                }
                return load(lanes);
              });
  }

  void split_values() { splits_values_ = true; }

  void add_to_sums(int64_t count, bool accumulate, float*) {
    pack_down<true>(s_.features, s_.stride, count, false, features_down_);
    for (const bool left : {false, true}) {
      if (left && !splits_values_) break;
      pack_down<false>(s_.values, s_.columns, count, left, values_down_);
      multiply_tiles(
          tiles_, {s_.stride / kTileRows, s_.columns / kTileWords, steps(count)},
          {features_down_, kTileWords, kTileSize, s_.stride * kTileWords, values_down_, s_.columns,
           kTileWords, added_, s_.columns, kTileRows * s_.columns, kTileWords},
          accumulate || left);
    }
  }
  void finish_sums(float* sums) { std::copy_n(added_, s_.width * s_.columns, sums); }

  void times_sums(int64_t count, int64_t first) {
    pack_rows(s_.features, s_.stride, count, width_steps_, false);
    multiply_rows(count, width_steps_, sums_, s_.columns, first, s_.result);
  }
  void make_grad_features(int64_t count) {
    pack_rows(s_.values, s_.columns, count, column_steps_, false);
    multiply_rows(count, column_steps_, transposed_, s_.stride, 0, s_.grad_features);
    if (!splits_values_) return;
    pack_rows(s_.values, s_.columns, count, column_steps_, true);
    multiply_tiles(tiles_, row_counts(count, column_steps_, s_.stride),
                   row_operands(column_steps_, transposed_, s_.stride, 0, s_.grad_features), true);
  }

 private:
  static constexpr int64_t kBlockWords = kFeatureBlock / 2;
  static int64_t steps(int64_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }

  // Rows 0 to depth - 1 of value(row, column), in pairs: all rounded, then what that left.
  template <typename Value>
  static void pack_sums(int64_t depth, int64_t columns, int64_t depth_steps, float* packed,
                        const Value& value) {
    float* rest = packed + depth_steps * kTileWords * columns;
    for (int64_t w = 0; w < depth_steps * kTileWords; ++w) {
      for (int64_t n = 0; n < columns; n += kLanes) {
        const Floats first = 2 * w < depth ? value(2 * w, n) : zeros();
        const Floats second = 2 * w + 1 < depth ? value(2 * w + 1, n) : zeros();
        const auto rounded = Tiles::narrow_two(first, second);
        const auto left =
            Tiles::narrow_two(first - from_bf16(rounded.first), second - from_bf16(rounded.second));
        store(packed + w * columns + n, floats_of(rounded.pairs));
        store(rest + w * columns + n, floats_of(left.pairs));
      }
    }
  }

  // A number, or what rounding leaves of it.
  static Floats part(const float* from, bool left) {
    const Floats x = load(from);
    return left ? x - from_bf16(Tiles::narrow(x)) : x;
  }

  // Rows of a block in pairs: [words][columns], or as left operands [step][columns][16 words].
  template <bool kTranspose>
  static void pack_down(const float* rows, int64_t columns, int64_t count, bool left,
                        float* packed) {
    for (int64_t r = 0; r < count; r += kTileDepth) {
      for (int64_t n = 0; n < columns; n += kLanes) {
        Floats words[kTileWords];
        for (int64_t k = 0; k < kTileWords; ++k) {
          const auto row = [&](int64_t i) {
            return i < count ? part(rows + i * columns + n, left) : zeros();
          };
          words[k] = floats_of(Tiles::narrow_two(row(r + 2 * k), row(r + 2 * k + 1)).pairs);
        }
        if constexpr (kTranspose) transpose_16x16(words);
        float* to = packed + r / 2 * columns + (kTranspose ? n * kTileWords : n);
        const int64_t distance = kTranspose ? kTileWords : columns;
        for (int64_t k = 0; k < kTileWords; ++k) store(to + k * distance, words[k]);
      }
    }
  }

  // The first `count` rows of a block as left operands.
  void pack_rows(const float* rows, int64_t columns, int64_t count, int64_t depth_steps,
                 bool left) {
    const int64_t distance = depth_steps * kTileWords;
    for (int64_t i = 0; i < count; ++i) {
      float* to = rows_ + i * distance;
      std::fill_n(to + distance - kLanes, kLanes, 0.0f);
      for (int64_t n = 0; n < columns; n += kLanes) {
        store_half_words(to + n / 2, Tiles::narrow(part(rows + i * columns + n, left)));
      }
    }
  }

  // result = the packed rows times the columns of packed sums from `first` on, and what those left.
  void multiply_rows(int64_t count, int64_t depth_steps, const float* sums, int64_t columns,
                     int64_t first, float* result) {
    const TileCounts counts = row_counts(count, depth_steps, columns - first);
    TileOperands o = row_operands(depth_steps, sums, columns, first, result);
    multiply_tiles(tiles_, counts, o, false);
    o.b += depth_steps * kTileWords * columns;
    multiply_tiles(tiles_, counts, o, true);
  }
  static TileCounts row_counts(int64_t count, int64_t depth_steps, int64_t columns) {
    return {(count + kTileRows - 1) / kTileRows, columns / kTileWords, depth_steps};
  }
  TileOperands row_operands(int64_t depth_steps, const float* sums, int64_t columns, int64_t first,
                            float* result) const {
    const int64_t distance = depth_steps * kTileWords;
    return {rows_,     distance,   kTileRows * distance, kTileWords, sums + first,
            columns,   kTileWords, result + first,       columns,    kTileRows * columns,
            kTileWords};
  }

  const FeatureScratch& s_;
  const int64_t width_steps_, column_steps_;
  float *rows_, *features_down_, *values_down_, *sums_, *transposed_, *added_;
  bool splits_values_ = false;
  Tiles tiles_;
};

}  // namespace lra::kernels::LRA_ISA
