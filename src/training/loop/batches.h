// Batches for training and evaluation, and the threads that prepare them ahead.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/task_shape.h"
#include "data/batch_order.h"
#include "data/dataset.h"
#include "models/model.h"
#include "ops/libtorch.h"
#include "training/loop/masking.h"

namespace lra::training {

struct Batch {
  models::ModelInput input;
  at::Tensor labels_B;     // int64; of places as hide_positions() says
  int64_t num_tokens = 0;  // valid ones
};

// Tokens int32 [B, L] as the task's models take them: as they are, or as values; of several
// channels, [B, L * channels].
models::ModelInput input_of(const at::Tensor& tokens_BL, const at::Tensor& lengths_B,
                            const TaskShape& shape);

// The examples `indices`, cut to the task's length and padded on the right. With `trim` the batch
// is as long as its longest example, rounded up to 32; padding is masked, so results do not change
// without dropout. With it another pattern is dropped, since places are counted along the batch.
Batch make_batch(const Split& split, std::span<const int64_t> indices, const TaskShape& shape,
                 bool trim);

// Input that make_batch would give to a model, with shape and lengths only: tokens or values are on
// the device `meta`, and no token is read.
models::ModelInput input_shape(const Split& split, std::span<const int64_t> indices,
                               const TaskShape& shape, bool trim);

// Returns the batch on the model's device, or itself if it is there already. It is copied to a GPU
// through pinned memory, queued behind earlier work, without the host waiting. Lengths stay on the
// CPU, where models need them.
Batch to_device(const Batch& batch, at::Device device);

// Share of one rank in every step: `count` micro-batches from number `first` on, of `of` in all.
struct StepParts {
  int64_t first = 0, count = 1, of = 1;
};

// The examples of a step in their order, cut into these micro-batches, whose sizes differ by one at
// most.
std::vector<std::vector<int64_t>> micro_batches(const BatchOrder& order, int64_t step,
                                                const StepParts& parts);

struct LoaderSettings {
  bool trim = true;      // see make_batch
  int64_t prefetch = 0;  // steps prepared ahead; 0: each when it is asked for, without threads
  int64_t threads = 1;   // that prepare them, at least 1
  StepParts parts = {};
  std::optional<Masking> masking = {};  // none: labels are those of the examples
};

// The steps from `first_step` on, each as its micro-batches (1 to the size of a batch), or a rank's
// share of them. The examples of a step depend only on the order, so the stream is the same with
// any `prefetch`, `threads` and `parts`, on any number of ranks, and after any resume.
class BatchLoader {
 public:
  BatchLoader(Split split, TaskShape shape, BatchOrder order, int64_t first_step,
              const LoaderSettings& settings);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  std::vector<Batch> next();

 private:
  std::vector<Batch> load(int64_t step) const;
  void run();

  const Split split_;
  const TaskShape shape_;
  const BatchOrder order_;
  const LoaderSettings settings_;

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t wanted_step_, next_step_;  // to hand out, to begin with
  std::map<int64_t, std::vector<Batch>> ready_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace lra::training
