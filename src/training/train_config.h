// Settings of the training loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace lra::training {

struct TrainConfig {
  int64_t batch_size = 32, steps = 5000;
  double learning_rate = 0.05;
  std::string schedule = "rsqrt";
  int64_t warmup_steps = 1000, cycle_steps = 0;
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.98, eps = 1e-9, clip_norm = 0;
  int64_t eval_every = 500, eval_batch_size = 32, eval_examples = 0;
  int64_t test_examples = 0;
  std::string test_checkpoint = "last";
  int64_t checkpoint_every = 0, keep_checkpoints = 2, log_every = 10;
  bool trim_padding = true;
  int64_t prefetch = 2;
  std::string precision = "fp32";

  void fields(auto& f) {
    f("batch_size", batch_size, "examples per step", between(1, 65536));
    f("steps", steps, "updates in all", between(1, 1e9));
    f("learning_rate", learning_rate, "factor of the schedule", at_least(0));
    f("schedule", schedule,
      "rsqrt: rate * min(1, step / warmup) / sqrt(max(step, warmup)); cosine: rate * warmup * half "
      "a cosine over "
      "cycle_steps; constant: rate * warmup",
      one_of({"rsqrt", "cosine", "constant"}));
    f("warmup_steps", warmup_steps, "steps of linear warmup; step 0 has rate 0 when there are any",
      at_least(0));
    f("cycle_steps", cycle_steps, "steps of the cosine; 0: all of them", at_least(0));
    f("weight_decay", weight_decay, "decoupled, times the learning rate, on every parameter",
      at_least(0));
    f("beta1", beta1, "Adam's first moment", rate());
    f("beta2", beta2, "Adam's second moment", rate());
    f("eps", eps, "added to Adam's denominator", at_least(1e-30));
    f("clip_norm", clip_norm, "largest global gradient norm; 0: no clipping", at_least(0));
    f("eval_every", eval_every, "steps between validations; the last step always validates",
      at_least(1));
    f("eval_batch_size", eval_batch_size, "examples per evaluation batch", between(1, 65536));
    f("eval_examples", eval_examples, "validation examples used during training; 0: all of them",
      at_least(0));
    f("test_examples", test_examples,
      "test examples used; 0: all of them, which is what a published figure needs", at_least(0));
    f("test_checkpoint", test_checkpoint,
      "which weights are tested: the last, or the best on validation", one_of({"last", "best"}));
    f("checkpoint_every", checkpoint_every, "steps between checkpoints; 0: at every validation",
      at_least(0));
    f("keep_checkpoints", keep_checkpoints, "newest checkpoints kept besides the best",
      at_least(1));
    f("log_every", log_every, "steps between lines in metrics.jsonl", at_least(1));
    f("trim_padding", trim_padding,
      "cut batches to their longest example: less work, the same results but for the pattern of "
      "dropout");
    f("prefetch", prefetch, "batches prepared ahead by a thread; 0: none, no thread",
      between(0, 1024));
    f("precision", precision,
      "activations of the encoder; bf16: bfloat16 between operators, with float32 parameters, "
      "sums, "
      "logits, loss and optimizer",
      one_of({"fp32", "bf16"}));
  }
};

}  // namespace lra::training
