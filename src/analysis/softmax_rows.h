// Queries and keys of an unrestricted softmax attention, as heard from the operators that a mixer
// calls, and rows of its weights.
#pragma once

#include <functional>
#include <optional>

#include "ops/libtorch.h"

namespace lra::analysis {

class SoftmaxRows {
 public:
  // Runs `forward`, which computes one example, and listens to the attention operator. Nothing when
  // it is called any other way than once, on queries and keys of one length, without mask, block
  // lists, runs, bias or dropout: rows of those would have to know more than q and k. Whether rows
  // of q and k are tokens in their order is not known here: see agree_with.
  static std::optional<SoftmaxRows> heard_in(const std::function<void()>& forward);

  // Queries first .. first + count - 1 -> weights of all S keys, [H, count, S], float32.
  at::Tensor weights(int64_t first, int64_t count) const;

  // True if columns_HSC, keys first, first + 1, ... of the weights of all queries, equal those of
  // these rows to within `error`.
  bool agree_with(const at::Tensor& columns_HSC, int64_t first, double error) const;

 private:
  SoftmaxRows() = default;
  at::Tensor q_HSE_, k_HSE_;  // q is scaled
  int64_t left_ = -1, right_ = -1;
};

}  // namespace lra::analysis
