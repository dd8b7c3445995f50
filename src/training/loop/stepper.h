// The arithmetic of one training step: gradients of the mean loss over its micro-batches, and Adam.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/model.h"
#include "training/loop/batches.h"
#include "training/ranks/flat_parameters.h"
#include "training/ranks/gradient_sum.h"
#include "training/ranks/ranks.h"
#include "training/settings/group_config.h"
#include "training/settings/train_config.h"

namespace lra::training {

// Totals over all ranks.
struct StepLoss {
  double loss_sum = 0;                      // over the labels
  int64_t correct = 0, examples = 0;        // labels: one for each example, or predicted place
  int64_t tokens = 0, computed_tokens = 0;  // valid ones; positions that the model computed
  double gradient_norm = 0;                 // of the mean loss, before clipping
  bool weights_are_finite = true;           // all weights and buffers, after the update of step()

  double mean() const { return loss_sum / static_cast<double>(examples); }
};

// Holds on to the model and the parameters it is given; gradients, moments and values are theirs.
class Stepper {
 public:
  Stepper(const models::Model& model, FlatParameters& parameters, const TrainConfig& config,
          uint64_t seed, Ranks& ranks = one_rank(), const GroupConfigs& groups = {});

  // The loss of the steps from now on; weights are on the device of the parameters.
  void set_loss(models::LossSettings settings) { loss_ = std::move(settings); }

  // Stores the gradients of the mean loss over all examples of `parts` in the parameters, however
  // the examples are divided; a single part gives the bits of the plain loss. With several ranks,
  // `parts` are this rank's share, equal in size to the others', and the gradients are those of
  // all. Parts are moved to the device of the parameters, whose results are read at the end.
  // `shared` is summed over the ranks along with the loss. Nothing is updated. Throws LostRank.
  StepLoss gradients(std::span<const Batch> parts, int64_t step, std::span<double> shared = {});

  // Makes one update from the gradients, clipped, at the learning rates of `step` (the number of
  // steps before this one), and updates running statistics with those of the step. `num_updates` is
  // the number of updates in the moments: `step`, unless steps were skipped. Nothing is read.
  void update(int64_t step, int64_t num_updates);

  // gradients() and update(), with results read once, after both: a GPU has the whole step queued
  // before the host waits. So the update is there even if the loss or the gradient is not finite,
  // and who goes on after that undoes it. Several ranks read losses before the update, too.
  StepLoss step(std::span<const Batch> parts, int64_t step, int64_t num_updates,
                std::span<double> shared = {});

  // Restores weights, moments and buffers as they were before gradients(); buffers of Python
  // classes change in forward passes, not in updates. Only with train.on_nonfinite = "skip", which
  // keeps copies.
  void undo_step();

 private:
  // Results of a part that the host has not read.
  struct Unread {
    at::Tensor mean_loss, correct;
    double labels;
  };
  StepLoss queue_gradients(std::span<const Batch> parts, int64_t step, std::span<double> shared);
  // Adds the losses and hits of `unread_` to `sum` and returns the numbers of the other tensors, in
  // one copy, which waits for a device.
  std::vector<double> read_back(StepLoss& sum, const std::vector<at::Tensor>& others);
  // Labels of the step on all ranks, of which this one has `own`. Ranks have equally many examples;
  // their numbers of predicted places are added up.
  double count_of_all(int64_t own, bool has_places) const;
  void add_up(StepLoss& loss, std::span<double> shared);

  const models::Model& model_;
  models::LossSettings loss_;
  FlatParameters& parameters_;
  const TrainConfig config_;
  const uint64_t seed_;
  Ranks& ranks_;
  GradientSum sum_;
  std::vector<TrainConfig> config_of_segment_;
  const bool at_once_;
  const std::vector<layers::RunningStatistics*> statistics_;
  std::vector<Unread> unread_;
  at::Tensor norm_, statistics_sums_;    // of a step; the sums are undefined without statistics
  std::vector<at::Tensor> before_step_;  // FlatParameters::state(); empty if none is taken back
};

}  // namespace lra::training
