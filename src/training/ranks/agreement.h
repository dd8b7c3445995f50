// Control flags that all ranks obey after the same step: the clock and the signals that single
// ranks notice.
#pragma once

#include <array>
#include <functional>

#include "training/ranks/ranks.h"

namespace lra::training {

// A single process reads the clock and its signals directly. Several processes use the values of
// the last sum, which is repeated with every step, so that a signal to one of them stops all after
// the same step.
class Agreement {
 public:
  using Numbers = std::array<double, 3>;  // stops, requests to save, seconds of the first rank

  // `seconds`: how long the run has taken.
  Agreement(Ranks& ranks, std::function<double()> seconds);

  // Notices of this rank, to be summed over the ranks; clears its requests to save.
  Numbers notices() const;
  void settle(const Numbers& sums);
  // Both, with a separate sum. Throws LostRank.
  void settle();

  bool stop() const;
  bool take_save_request();
  double seconds() const;

 private:
  Ranks& ranks_;
  const std::function<double()> own_seconds_;
  bool stop_ = false, save_ = false;
  double seconds_ = 0;
};

}  // namespace lra::training
