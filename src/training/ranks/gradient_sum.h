// Gradients added up over the ranks while the backward pass still computes others.
//
// The flat gradient array is cut into pieces of one size from its end, since the last parameters'
// gradients are complete first. A piece is sent as soon as all parameters that reach into it are
// complete, and never before the pieces behind it: all ranks send in one order.
#pragma once

#include <vector>

#include "training/ranks/flat_parameters.h"
#include "training/ranks/ranks.h"

namespace lra::training {

class GradientSum {
 public:
  // Watches the parameters until it is destroyed; one at a time may. With one rank it does nothing.
  GradientSum(FlatParameters& parameters, Ranks& ranks, int64_t piece_bytes);
  // Pieces are larger on a GPU, where each costs a wait or a launch.
  GradientSum(FlatParameters& parameters, Ranks& ranks)
      : GradientSum(parameters, ranks, int64_t{parameters.gradients.is_cpu() ? 1 : 25} << 20) {}
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  // The next backward pass completes the gradients of the step.
  void begin();
  // Ends that pass and sends the rest. The sums are there after Ranks::wait(). Throws LostRank.
  void end();

 private:
  struct Hook;
  void complete(size_t part);
  void send_next();
  size_t piece_of(int64_t number) const;  // of the array
  size_t first_piece(size_t part) const;  // that a parameter reaches into
  size_t last_piece(size_t part) const;

  FlatParameters& parameters_;
  Ranks& ranks_;
  const int64_t piece_numbers_;
  std::vector<at::Tensor> pieces_;       // from the end of the array to its beginning
  std::vector<int64_t> parts_of_piece_;  // parameters that reach into each
  std::vector<int64_t> incomplete_;      // the same, of this step
  std::vector<char> part_is_complete_;
  size_t num_sent_ = 0;
  bool is_watching_ = false;
};

}  // namespace lra::training
