#include "kernels/feature_attention/feature_attention.h"

#include <algorithm>
#include <memory>

#include "base/parallel.h"
#include "kernels/choice.h"

namespace lra::kernels {
namespace {

template <typename T>
FeatureParts<T> choose_feature_parts() {
  if constexpr (std::is_same_v<T, Bf16>) {
    const Isa isa = choose(Op::kFeatureAttentionBf16);
    LRA_RETURN_TILES_CALL(isa, feature_parts<T>());
  } else if constexpr (std::is_same_v<T, float>) {
    LRA_RETURN_CALL(choose(Op::kFeatureAttention), feature_parts<T>());
  } else {
    return ref::feature_parts<T>();
  }
}

// Iterates over all runs of rows of all heads; heads of the same rows follow each other, as they do
// in memory.
template <typename T>
class Runs {
 public:
  using W = Wide<T>;

  explicit Runs(const FeatureAttention<T>& p)
      : p_(p),
        runs_((p.length + kFeatureRows - 1) / kFeatureRows),
        size_(p.width * feature_sum_columns(p.width)) {}

  // body(rows, the place of their head's sums in an array of all heads)
  template <typename Body>
  void for_each(const Body& body) const {
    parallel_for_each(p_.batch * runs_ * p_.heads, [&](int64_t n) {
      const int64_t head = n % p_.heads, run = n / p_.heads % runs_, example = n / p_.heads / runs_;
      const FeatureRows rows{example, head, run * kFeatureRows,
                             std::min(p_.length, (run + 1) * kFeatureRows)};
      body(rows, (example * p_.heads + head) * size_);
    });
  }

  // Numbers of the sums of all heads.
  int64_t all_sums() const { return p_.batch * p_.heads * size_; }

  // sums = those of every run, which body(rows, place, sums of the run) makes, in the runs' order.
  template <typename Body>
  void sum(W* sums, const Body& body) const {
    const auto of_runs =
        std::make_unique_for_overwrite<W[]>(static_cast<size_t>(runs_ * all_sums()));
    for_each([&](const FeatureRows& rows, int64_t place) {
      body(rows, place, of_runs.get() + rows.begin / kFeatureRows * all_sums() + place);
    });
    parallel_for_each(p_.batch * p_.heads, [&](int64_t head) {
      W* to = sums + head * size_;
      std::fill_n(to, size_, W{0});
      for (int64_t run = 0; run < runs_; ++run) {
        const W* from = of_runs.get() + run * all_sums() + head * size_;
        for (int64_t i = 0; i < size_; ++i) to[i] += from[i];
      }
    });
  }

 private:
  const FeatureAttention<T>& p_;
  int64_t runs_, size_;
};

}  // namespace

template <typename T>
void feature_attention_forward(const FeatureAttentionForward<T>& p) {
  const FeatureParts<T> parts = choose_feature_parts<T>();
  const Runs<T> runs(p.problem);
  runs.sum(p.sums, [&](const FeatureRows& rows, int64_t, Wide<T>* sums) {
    parts.sum_features(p.problem, rows, sums);
  });
  runs.for_each([&](const FeatureRows& rows, int64_t place) {
    parts.attend_features(p.problem, rows, p.sums + place, p.out);
  });
}

template <typename T>
void feature_attention_backward(const FeatureAttentionBackward<T>& p) {
  const FeatureParts<T> parts = choose_feature_parts<T>();
  const Runs<T> runs(p.problem);
  const auto grad_sums =
      std::make_unique_for_overwrite<Wide<T>[]>(static_cast<size_t>(runs.all_sums()));
  runs.sum(grad_sums.get(), [&](const FeatureRows& rows, int64_t place, Wide<T>* sums) {
    parts.query_gradients(p, rows, p.sums + place, sums);
  });
  runs.for_each([&](const FeatureRows& rows, int64_t place) {
    parts.key_gradients(p, rows, grad_sums.get() + place);
  });
}

template void feature_attention_forward(const FeatureAttentionForward<float>&);
template void feature_attention_forward(const FeatureAttentionForward<Bf16>&);
template void feature_attention_forward(const FeatureAttentionForward<double>&);
template void feature_attention_backward(const FeatureAttentionBackward<float>&);
template void feature_attention_backward(const FeatureAttentionBackward<Bf16>&);
template void feature_attention_backward(const FeatureAttentionBackward<double>&);

}  // namespace lra::kernels
