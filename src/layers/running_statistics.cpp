#include "layers/running_statistics.h"

#include <vector>

#include "ops/libtorch.h"

namespace lra::layers {

// The numbers of positions [S], then for each channel the sums [S, D] and the sums of squares.
at::Tensor take_sums(std::span<RunningStatistics* const> layers) {
  if (layers.empty()) return {};
  const at::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(layers.size());
  const int64_t dim = layers[0]->running_mean_.numel();
  at::Tensor sums;
  for (const auto& [part, first] : layers[0]->seen_) {
    std::vector<at::Tensor> counts, means, variances;
    for (const RunningStatistics* layer : layers) {
      const RunningStatistics::Seen& seen = layer->seen_.at(part);
      counts.push_back(seen.count);
      means.push_back(seen.mean);
      variances.push_back(seen.variance);
    }
    means.insert(means.end(), variances.begin(), variances.end());
    const at::Tensor counts_S = at::stack(counts).to(at::kDouble);
    const at::Tensor both = at::stack(means).to(at::kDouble).view({2, count, dim});
    both[1].add_(both[0] * both[0]);
    both.mul_(counts_S.unsqueeze(1));
    const at::Tensor of_part = at::cat({counts_S, both.view({-1})});
    sums = sums.defined() ? sums + of_part : of_part;
  }
  for (RunningStatistics* layer : layers) layer->seen_.clear();
  const auto options = layers[0]->running_mean_.options().dtype(at::kDouble);
  return sums.defined() ? sums : at::zeros({count * (1 + 2 * dim)}, options);
}

void follow(std::span<RunningStatistics* const> layers, const at::Tensor& sums) {
  if (layers.empty()) return;
  const at::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(layers.size());
  std::vector<at::Tensor> running, variances;
  for (RunningStatistics* layer : layers) {
    running.push_back(layer->running_mean_);
    variances.push_back(layer->running_var_);
  }
  running.insert(running.end(), variances.begin(), variances.end());
  const at::Tensor counts_S1 = sums.narrow(0, 0, count).unsqueeze(1);
  const at::Tensor both =
      sums.narrow(0, count, sums.numel() - count).view({2, count, -1}) / counts_S1;
  // Unbiased, as in PyTorch.
  both[1].sub_(both[0] * both[0]).clamp_min_(0).mul_(counts_S1);
  both[1].div_((counts_S1 - 1).clamp_min_(1));
  // A layer that saw no position follows itself.
  const at::Tensor now = at::where(counts_S1.ge(1), both.to(running[0].scalar_type()),
                                   at::stack(running).view(both.sizes()));
  at::_foreach_mul_(running, 1 - RunningStatistics::kMomentum);
  at::_foreach_add_(running, now.flatten(0, 1).unbind(), RunningStatistics::kMomentum);
}

}  // namespace lra::layers
