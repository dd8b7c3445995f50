#include "analysis/softmax_rows.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "analysis/operator_calls.h"
#include "ops/product.h"
#include "ops/softmax.h"

namespace lra::analysis {
namespace {

// Arguments of lra::attention_forward, in the order of its schema.
enum Argument : size_t {
  kQueries = 0,
  kKeys = 1,
  kKeyMask = 3,
  kQueryMask = 4,
  kOffsets = 5,
  kKeyBlocks = 6,
  kRuns = 7,
  kSizes = 8,
  kScale = 9,
  kRate = 10,
  kBias = 12
};

}  // namespace

std::optional<SoftmaxRows> SoftmaxRows::heard_in(const std::function<void()>& forward) {
  std::vector<std::vector<c10::IValue>> calls;
  listen_to_operators(forward, [&](std::string_view name, OperatorInputs inputs) {
    if (name == "lra::attention_forward") calls.emplace_back(inputs.begin(), inputs.end());
  });
  if (calls.size() != 1) return {};
  const auto& in = calls[0];
  for (const size_t given : {kKeyMask, kQueryMask, kOffsets, kKeyBlocks, kRuns, kBias}) {
    if (!in[given].isNone()) return {};
  }
  const at::Tensor q = in[kQueries].toTensor(), k = in[kKeys].toTensor();
  if (q.size(0) != 1 || q.size(1) != k.size(1) || in[kRate].toDouble() != 0) return {};
  const auto sizes = in[kSizes].toIntVector();
  double scale = in[kScale].toDouble();
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  SoftmaxRows rows;
  rows.q_HSE_ = (q[0].transpose(0, 1) * scale).contiguous();
  rows.k_HSE_ = k[0].transpose(0, 1).contiguous();
  rows.left_ = sizes[2];
  rows.right_ = sizes[3];
  return rows;
}

at::Tensor SoftmaxRows::weights(int64_t first, int64_t count) const {
  at::Tensor scores_HQS = ops::product(q_HSE_.narrow(1, first, count), k_HSE_.transpose(1, 2));
  if (left_ >= 0 || right_ >= 0) {
    const auto places = k_HSE_.options().dtype(at::kLong);
    const at::Tensor ahead_QS = at::arange(k_HSE_.size(1), places).unsqueeze(0) -
                                at::arange(first, first + count, places).unsqueeze(1);
    if (left_ >= 0) scores_HQS.masked_fill_(ahead_QS.lt(-left_), -INFINITY);
    if (right_ >= 0) scores_HQS.masked_fill_(ahead_QS.gt(right_), -INFINITY);
  }
  return ops::softmax(scores_HQS);
}

bool SoftmaxRows::agree_with(const at::Tensor& columns_HSC, int64_t first, double error) const {
  constexpr int64_t kRowsAtOnce = 512;
  const int64_t length = q_HSE_.size(1);
  if (columns_HSC.size(1) != length || columns_HSC.size(0) != q_HSE_.size(0)) return false;
  for (int64_t query = 0; query < length; query += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, length - query);
    const at::Tensor mine = weights(query, count).narrow(2, first, columns_HSC.size(2));
    const at::Tensor apart = (mine - columns_HSC.narrow(1, query, count)).abs();
    // NaN counts as disagreement.
    if (!(apart.max().item<double>() <= error)) return false;
  }
  return true;
}

}  // namespace lra::analysis
