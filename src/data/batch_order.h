// The examples of each training step.
//
// Examples are numbered through all epochs: step s of batches of `batch` holds positions s * batch
// .. s * batch + batch - 1; position p is place p % n of epoch p / n, and every epoch has its own
// keyed permutation. So batches cross the borders of epochs (the last n % batch examples are not
// lost, as they are if incomplete batches are dropped), and a resumed run needs only the step
// number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/permutation.h"
#include "base/rng.h"

namespace lra {

class BatchOrder {
 public:
  // `num_examples` and `batch` >= 1.
  BatchOrder(int64_t num_examples, int64_t batch, uint64_t seed)
      : num_examples_(num_examples), batch_(batch), seed_(seed) {
    LRA_CHECK_GE(num_examples, 1);
    LRA_CHECK_GE(batch, 1);
  }

  int64_t batch() const { return batch_; }

  // Writes the `batch` example indices of a step (0, 1, ...) into `indices`.
  void fill(int64_t step, std::span<int64_t> indices) const {
    LRA_CHECK_EQ(static_cast<int64_t>(indices.size()), batch_);
    LRA_CHECK_GE(step, 0);
    for (int64_t k = 0; k < batch_;) {
      const int64_t position = step * batch_ + k;
      const Permutation order = epoch_order(position / num_examples_);
      const int64_t place = position % num_examples_;
      const int64_t count = std::min(batch_ - k, num_examples_ - place);
      for (int64_t i = 0; i < count; ++i) {
        indices[static_cast<size_t>(k + i)] =
            static_cast<int64_t>(order(static_cast<uint64_t>(place + i)));
      }
      k += count;
    }
  }

 private:
  Permutation epoch_order(int64_t epoch) const {
    const auto number = static_cast<uint64_t>(epoch);
    return {static_cast<uint64_t>(num_examples_),
            derive_key(seed_, RandomUse::kShuffle, static_cast<uint32_t>(number),
                       static_cast<uint32_t>(number >> 32))};
  }

  int64_t num_examples_, batch_;
  uint64_t seed_;
};

}  // namespace lra
