// Offsets of the rows of one head, and the rule for denominators, shared by the implementations of
// feature_attention.h. A template of the instruction set, so that none gets code that was compiled
// for another.
#pragma once

#include "kernels/choice.h"
#include "kernels/feature_attention/feature_attention.h"

namespace lra::kernels {

// The parts of a projection, in their order.
enum class QkvPart { kQuery, kKey, kValue };

template <typename T, Isa kIsa>
class FeatureHeadRows {
 public:
  FeatureHeadRows(const FeatureAttention<T>& p, const FeatureRows& rows)
      : width(p.width), columns(feature_sum_columns(p.width)), p_(p), rows_(rows) {}

  const int64_t width, columns;

  // Offset of row i in qkv and its gradient.
  int64_t row(int64_t i, QkvPart part) const {
    const int64_t token = rows_.example * p_.length + i;
    return ((token * 3 + static_cast<int64_t>(part)) * p_.heads + rows_.head) * width;
  }
  const T* input(int64_t i, QkvPart part) const { return p_.qkv + row(i, part); }
  // Offset of row i in out and its gradient.
  int64_t out_row(int64_t i) const {
    return ((rows_.example * p_.length + i) * p_.heads + rows_.head) * width;
  }
  bool takes_part(int64_t j) const {
    return !p_.mask || p_.mask[rows_.example * p_.length + j] != 0;
  }
  // 1 / (sum + eps), or 0 without a key.
  Wide<T> inverse(Wide<T> sum) const {
    return sum == 0 ? 0 : 1 / (sum + static_cast<Wide<T>>(p_.eps));
  }

 private:
  const FeatureAttention<T>& p_;
  const FeatureRows& rows_;
};

}  // namespace lra::kernels
