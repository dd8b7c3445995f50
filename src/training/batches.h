// Batches for training and evaluation, and the thread that prepares them ahead.
#pragma once

#include <torch/torch.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/task_shape.h"
#include "models/classifier.h"
#include "tasks/batch_order.h"
#include "tasks/dataset.h"

namespace lra::training {

struct Batch {
  models::TokenBatch input;
  at::Tensor labels_B;     // int64
  int64_t num_tokens = 0;  // as the model computes them, padding included
};

// The examples `indices`, cut to the task's length and padded on the right. With `trim` the batch
// is as long as its longest example, rounded up to 32; padding is masked, so results do not change
// without dropout. With it another pattern is dropped, since places are counted along the batch.
Batch make_batch(const tasks::Split& split, std::span<const int64_t> indices,
                 const TaskShape& shape, bool trim);

// What one rank takes of every step: `count` micro-batches from number `first` on, of `of` in all.
struct StepParts {
  int64_t first = 0, count = 1, of = 1;
};

// The steps from `first_step` on, each as its micro-batches (1 to the size of a batch): its
// examples in their order, cut into parts whose sizes differ by one at most, and of these a rank's
// share. Which examples a step takes is a function of the order alone, so the stream is the same
// with any `prefetch` and `parts`, on any number of ranks together, and after any resume.
class BatchLoader {
 public:
  BatchLoader(tasks::Split split, TaskShape shape, tasks::BatchOrder order, int64_t first_step,
              bool trim, int64_t prefetch, StepParts parts = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  std::vector<Batch> next();

 private:
  std::vector<Batch> load(int64_t step) const;
  void run();

  const tasks::Split split_;
  const TaskShape shape_;
  const tasks::BatchOrder order_;
  const bool trim_;
  const size_t prefetch_;
  const StepParts parts_;
  int64_t next_step_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Batch>> ready_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace lra::training
