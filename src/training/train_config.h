// Settings of the training loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace lra::training {

struct TrainConfig {
  int64_t batch_size = 32, accumulate = 1, steps = 5000, examples = 0;
  double epochs = 0, max_seconds = 0;
  int64_t patience = 0;
  double learning_rate = 0.05;
  std::string schedule = "rsqrt";
  int64_t warmup_steps = 1000, cycle_steps = 0;
  double weight_decay = 0.1, beta1 = 0.9, beta2 = 0.98, eps = 1e-9, clip_norm = 0;
  int64_t eval_every = 500, eval_batch_size = 32, eval_examples = 0;
  int64_t test_examples = 0;
  std::string test_checkpoint = "last";
  int64_t checkpoint_every = 0, keep_checkpoints = 2, log_every = 10;
  bool trim_padding = true;
  std::string token_order = "given";
  int64_t prefetch = 2, loader_threads = 1;
  std::string precision = "fp32";
  bool recompute = false;
  std::string memory_check = "refuse";
  std::string on_nonfinite = "stop";
  double spike_factor = 0;
  int64_t max_skips = 10, max_roll_backs = 3;

  void fields(auto& f) {
    f("batch_size", batch_size, "examples per step", between(1, 65536));
    f("accumulate", accumulate,
      "micro-batches that a step is computed in, to save memory: the same update to rounding, "
      "another pattern of dropout; at most batch_size",
      between(1, 65536));
    f("steps", steps, "updates in all, where neither epochs nor examples says otherwise",
      between(1, 1e9));
    f("epochs", epochs, "instead of steps: passes over the training split; 0: see steps",
      between(0, 1e9));
    f("examples", examples, "instead of steps: examples to train on; 0: see steps",
      between(0, int64_t{1} << 46));
    f("max_seconds", max_seconds,
      "training ends after this time, validations, saving and the parts before a resume (up to "
      "their last checkpoint) included; then the run is validated, tested and done; 0: no limit",
      at_least(0));
    f("patience", patience,
      "training ends after this many validations in a row without a better accuracy; 0: never",
      between(0, 1e9));
    f("learning_rate", learning_rate, "factor of the schedule", at_least(0));
    f("schedule", schedule,
      "rsqrt: rate * min(1, step / warmup) / sqrt(max(step, warmup)); cosine: rate * warmup * half "
      "a cosine over "
      "cycle_steps; constant: rate * warmup",
      one_of({"rsqrt", "cosine", "constant"}));
    f("warmup_steps", warmup_steps, "steps of linear warmup; step 0 has rate 0 when there are any",
      between(0, 1e9));
    f("cycle_steps", cycle_steps, "steps of the cosine; 0: all of them", between(0, 1e9));
    f("weight_decay", weight_decay, "decoupled, times the learning rate, on every parameter",
      at_least(0));
    f("beta1", beta1, "Adam's first moment", rate());
    f("beta2", beta2, "Adam's second moment", rate());
    f("eps", eps, "added to Adam's denominator", at_least(1e-30));
    f("clip_norm", clip_norm, "largest global gradient norm; 0: no clipping", at_least(0));
    f("eval_every", eval_every, "steps between validations; the last step always validates",
      between(1, 1e9));
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
      "compute little padding: batches are cut to their longest example, and their rows sorted by "
      "length and computed in groups, each as long as its longest row: the same results but for "
      "rounding and the pattern of dropout; false: every example at the full length");
    f("token_order", token_order,
      "a control: shuffled puts the tokens of every example into an order of its own, in training "
      "and evaluation, so that only which tokens there are is left",
      one_of({"given", "shuffled"}));
    f("prefetch", prefetch, "batches prepared ahead; 0: none, no thread", between(0, 1024));
    f("loader_threads", loader_threads, "threads that prepare them, at most one for each",
      between(1, 1024));
    f("precision", precision,
      "activations of the encoder; bf16: bfloat16 between operators, with float32 parameters, "
      "sums, "
      "logits, loss and optimizer",
      one_of({"fp32", "bf16"}));
    f("recompute", recompute,
      "keep only the input of each encoder block and compute the rest again in the backward pass: "
      "less memory, about a third more work, the same bits");
    f("memory_check", memory_check,
      "before training, the memory it will take is estimated on a few examples; when that is "
      "more than there is: refuse, or warn and go on; off: no estimate, nor is there one of the "
      "memory of a GPU",
      one_of({"refuse", "warn", "off"}));
    f("on_nonfinite", on_nonfinite,
      "a step whose loss, gradient or updated weights are not finite; stop: the run ends as "
      "diverged; skip: the step counts, its update is left out (needs a copy of weights and "
      "moments); roll_back: weights and moments of the last scheduled checkpoint, and on with the "
      "step after the bad one",
      one_of({"stop", "skip", "roll_back"}));
    f("spike_factor", spike_factor,
      "a step whose loss or gradient norm is more than this many times its running mean is treated "
      "like one that is not finite; 0: none is",
      between(0, 1e9));
    f("max_skips", max_skips, "left out in a row before the run ends as diverged", at_least(1));
    f("max_roll_backs", max_roll_backs, "of a run before it ends as diverged", at_least(1));
  }
};

}  // namespace lra::training
