// Mean loss and accuracy since the last line of metrics.
#pragma once

#include <cstdint>

namespace lra::training {

struct RunningMean {
  double loss_sum = 0;
  int64_t correct = 0, count = 0;

  void add(double sum_of_losses, int64_t num_correct, int64_t num_examples) {
    loss_sum += sum_of_losses;
    correct += num_correct;
    count += num_examples;
  }
  double loss() const { return count ? loss_sum / static_cast<double>(count) : 0; }
  double accuracy() const {
    return count ? static_cast<double>(correct) / static_cast<double>(count) : 0;
  }
  bool operator==(const RunningMean&) const = default;
};

}  // namespace lra::training
