// Feature attention with products in float.
#include "kernels/feature_attention/feature_attention_blocks.h"
#include "kernels/gemm/gemm.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Products of a block of rows. `sums` is Z or its gradient, [width, columns].
class FloatFeatures {
 public:
  explicit FloatFeatures(const FeatureScratch& scratch) : s_(scratch) {}

  // Sums that the next products multiply, and those that make_grad_features() does.
  void take_sums(const float* sums) { sums_ = sums; }
  void take_transposed(const float* sums) {
    thread_local AlignedBuffer space;
    transposed_ = space.reserve(s_.columns * s_.stride);  // [width + 1, stride]
    for (int64_t c = 0; c <= s_.width; ++c) {
      float* to = transposed_ + c * s_.stride;
      std::fill_n(to + s_.stride - kLanes, kLanes, 0.0f);
      for (int64_t r = 0; r < s_.width; ++r) to[r] = sums[r * s_.columns + c];
    }
  }

  // Says that values are not bfloat16 numbers.
  void split_values() {}

  // sums (+)= features^T values; complete after finish_sums().
  void add_to_sums(int64_t count, bool accumulate, float* sums) {
    gemm({s_.width, s_.columns, count},
         {s_.features, 1, s_.stride, s_.values, s_.columns, kLanes, sums, s_.columns}, accumulate);
  }
  void finish_sums(float*) {}

  // result = features times the columns of sums from `first`, a multiple of sixteen, on
  void times_sums(int64_t count, int64_t first) {
    gemm({count, s_.columns - first, s_.width},
         {s_.features, s_.stride, 1, sums_ + first, s_.columns, kLanes, s_.result + first,
          s_.columns},
         false);
  }

  // grad_features = values times sums transposed
  void make_grad_features(int64_t count) {
    gemm({count, s_.stride, s_.width + 1},
         {s_.values, s_.columns, 1, transposed_, s_.stride, kLanes, s_.grad_features, s_.stride},
         false);
  }

 private:
  const FeatureScratch& s_;
  const float* sums_ = nullptr;
  float* transposed_ = nullptr;
};

}  // namespace

template <typename T>
FeatureParts<T> feature_parts() {
  return parts_of<FloatFeatures, T>();
}
template FeatureParts<float> feature_parts();
template FeatureParts<Bf16> feature_parts();

}  // namespace lra::kernels::LRA_ISA
