#include "training/ranks/agreement.h"

#include <utility>

#include "base/stop_flag.h"

namespace lra::training {

Agreement::Agreement(Ranks& ranks, std::function<double()> seconds)
    : ranks_(ranks), own_seconds_(std::move(seconds)) {}

Agreement::Numbers Agreement::notices() const {
  if (ranks_.count() == 1) return {};
  return {stop_requested() ? 1.0 : 0.0, lra::take_save_request() != 0 ? 1.0 : 0.0,
          ranks_.is_first() ? own_seconds_() : 0.0};
}

void Agreement::settle(const Numbers& sums) {
  stop_ = sums[0] > 0;
  save_ = save_ || sums[1] > 0;
  seconds_ = sums[2];
}

void Agreement::settle() {
  Numbers numbers = notices();
  ranks_.sum(numbers);
  settle(numbers);
}

bool Agreement::stop() const { return ranks_.count() == 1 ? stop_requested() : stop_; }

bool Agreement::take_save_request() {
  return ranks_.count() == 1 ? lra::take_save_request() != 0 : std::exchange(save_, false);
}

double Agreement::seconds() const { return ranks_.count() == 1 ? own_seconds_() : seconds_; }

}  // namespace lra::training
