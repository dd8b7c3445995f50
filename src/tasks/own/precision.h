// Finds channels of which float32 keeps too little: large numbers that differ by little, as seconds
// since 1970 do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/own/examples.h"

namespace lra::tasks {

class PrecisionLoss {
 public:
  // The numbers of one more sequence, and what float32 lost of them.
  void add(const OwnSequence& sequence, int64_t channels);
  // A sentence about the first channel whose values in most examples differ by so little that
  // float32 keeps less than two digits of the differences; empty if there is none. Examples of one
  // value do not count.
  std::string doubt() const;

 private:
  struct Channel {
    int64_t num_varying = 0, num_lossy = 0;
    double deviation = 0, magnitude = 0;  // of the first lossy sequence
  };
  void add_channel(const OwnSequence& sequence, size_t channel);  // of all channels_

  std::vector<Channel> channels_;
  int64_t num_sequences_ = 0;
};

}  // namespace lra::tasks
