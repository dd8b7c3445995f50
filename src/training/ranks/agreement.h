// Control flags that all ranks obey after the same step: the clock and the signals that single
// ranks notice.
#pragma once

#include <array>
#include <functional>
#include <utility>

#include "base/stop_flag.h"
#include "training/ranks/ranks.h"

namespace lra::training {

// A single process reads the clock and its signals directly. Several processes use the values of
// the last sum, which is repeated with every step, so that a signal to one of them stops all after
// the same step.
class Agreement {
 public:
  using Numbers = std::array<double, 3>;  // stops, requests to save, seconds of the first rank

  // `seconds`: how long the run has taken.
  Agreement(Ranks& ranks, std::function<double()> seconds)
      : ranks_(ranks), own_seconds_(std::move(seconds)) {}

  // Notices of this rank, to be summed over the ranks; clears its requests to save.
  Numbers notices() const {
    if (ranks_.count() == 1) return {};
    return {stop_requested() ? 1.0 : 0.0, lra::take_save_request() != 0 ? 1.0 : 0.0,
            ranks_.is_first() ? own_seconds_() : 0.0};
  }
  void settle(const Numbers& sums) {
    stop_ = sums[0] > 0;
    save_ = save_ || sums[1] > 0;
    seconds_ = sums[2];
  }
  // Both, with a separate sum. Throws LostRank.
  void settle() {
    Numbers numbers = notices();
    ranks_.sum(numbers);
    settle(numbers);
  }

  bool stop() const { return ranks_.count() == 1 ? stop_requested() : stop_; }
  bool take_save_request() {
    return ranks_.count() == 1 ? lra::take_save_request() != 0 : std::exchange(save_, false);
  }
  double seconds() const { return ranks_.count() == 1 ? own_seconds_() : seconds_; }

 private:
  Ranks& ranks_;
  const std::function<double()> own_seconds_;
  bool stop_ = false, save_ = false;
  double seconds_ = 0;
};

}  // namespace lra::training
