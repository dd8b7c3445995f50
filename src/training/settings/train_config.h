// Settings of the training loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace lra::training {

// Values of train.objective.
inline constexpr const char* kMaskedObjective = "masked";

struct TrainConfig {
  std::string objective = "classify";
  double mask_fraction = 0;
  std::string class_weights = "none";
  double label_smoothing = 0;
  std::string masked_loss = "cross_entropy";
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

  bool is_masked() const { return objective == kMaskedObjective; }

  void fields(auto& f) {
    f("objective", objective,
      "classify: predict the label; masked: hide positions of the inputs and predict them, to "
      "pretrain weights for --init-from",
      one_of({"classify", kMaskedObjective}));
    f("class_weights", class_weights,
      "weights of examples in the training loss; balanced: every class counts alike, with weight "
      "num_train / (classes * examples of the class); none: every example counts alike",
      one_of({"none", "balanced"}));
    f("label_smoothing", label_smoothing,
      "share of the training target that is uniform over the classes; 0: none", rate());
    f("mask_fraction", mask_fraction,
      "with objective=masked, the share of positions that is hidden; 0: the published share, 0.5 "
      "of pixels, 0.1 of ListOps symbols, 0.15 of other tokens",
      rate());
    f("masked_loss", masked_loss,
      "with objective=masked; cross_entropy: over tokens or the 256 gray levels; l1: absolute "
      "error of the gray level, with task.input=values",
      one_of({"cross_entropy", "l1"}));
    f("batch_size", batch_size, "examples per step", between(1, 65536));
    f("accumulate", accumulate,
      "micro-batches per step, to save memory; the update is the same up to rounding and the "
      "dropout pattern; at most batch_size",
      between(1, 65536));
    f("steps", steps, "number of updates, unless epochs or examples is set", between(1, 1e9));
    f("epochs", epochs, "passes over the training split, instead of steps; 0: use steps",
      between(0, 1e9));
    f("examples", examples, "examples to train on, instead of steps; 0: use steps",
      between(0, int64_t{1} << 46));
    f("max_seconds", max_seconds,
      "seconds after which training ends, including validations, saving and the time before a "
      "resume (up to its last checkpoint); the run is then validated and tested; 0: no limit",
      at_least(0));
    f("patience", patience,
      "validations in a row without a better accuracy after which training ends; 0: never",
      between(0, 1e9));
    f("learning_rate", learning_rate, "learning rate, multiplied by the schedule", at_least(0));
    f("schedule", schedule,
      "with up = min(1, step / warmup_steps), rsqrt: rate * up / sqrt(max(step, warmup_steps)); "
      "cosine: rate * up * half a cosine over cycle_steps; constant: rate * up",
      one_of({"rsqrt", "cosine", "constant"}));
    f("warmup_steps", warmup_steps, "steps of linear warmup; if above 0, the first step has rate 0",
      between(0, 1e9));
    f("cycle_steps", cycle_steps, "steps of the cosine; 0: all steps", between(0, 1e9));
    f("weight_decay", weight_decay,
      "decoupled weight decay of every parameter, multiplied by the learning rate", at_least(0));
    f("beta1", beta1, "decay rate of Adam's first moment", rate());
    f("beta2", beta2, "decay rate of Adam's second moment", rate());
    f("eps", eps, "added to Adam's denominator", at_least(1e-30));
    f("clip_norm", clip_norm, "maximum global gradient norm; 0: no clipping", at_least(0));
    f("eval_every", eval_every, "steps between validations; the last step always validates",
      between(1, 1e9));
    f("eval_batch_size", eval_batch_size, "examples per evaluation batch", between(1, 65536));
    f("eval_examples", eval_examples, "validation examples used during training; 0: all",
      at_least(0));
    f("test_examples", test_examples, "test examples used; 0: all, as a published result requires",
      at_least(0));
    f("test_checkpoint", test_checkpoint, "weights to test: the last, or the best on validation",
      one_of({"last", "best"}));
    f("checkpoint_every", checkpoint_every, "steps between checkpoints; 0: at every validation",
      at_least(0));
    f("keep_checkpoints", keep_checkpoints, "number of newest checkpoints kept besides the best",
      at_least(1));
    f("log_every", log_every, "steps between lines in metrics.jsonl", at_least(1));
    f("trim_padding", trim_padding,
      "compute little padding: cut batches to their longest example, sort their rows by length and "
      "compute them in groups, each as long as its longest row; results are the same except for "
      "rounding and the dropout pattern; false: compute every example at the full length");
    f("token_order", token_order,
      "a control: shuffled permutes the tokens of each example, in training and evaluation, so "
      "that only the bag of tokens is left",
      one_of({"given", "shuffled"}));
    f("prefetch", prefetch,
      "batches prepared ahead; 0: prepare each batch when it is needed, without a thread",
      between(0, 1024));
    f("loader_threads", loader_threads,
      "threads that prepare batches, at most one per prefetched batch", between(1, 1024));
    f("precision", precision,
      "precision of the encoder's activations; bf16: bfloat16 between operators, with float32 "
      "parameters, sums, logits, loss and optimizer",
      one_of({"fp32", "bf16"}));
    f("recompute", recompute,
      "keep only the input of each encoder block and recompute activations in the backward pass: "
      "less memory, about a third more work, the same bits");
    f("memory_check", memory_check,
      "estimate the memory of training on a few examples before it starts, and refuse the run or "
      "warn if there is too little; off: no estimate; there is none for GPU memory",
      one_of({"refuse", "warn", "off"}));
    f("on_nonfinite", on_nonfinite,
      "on a step whose loss, gradient or updated weights are NaN or infinite; stop: end the run as "
      "diverged; skip: count the step but discard its update (needs a copy of weights and "
      "moments); roll_back: restore weights and moments of the last scheduled checkpoint and "
      "continue with the next step",
      one_of({"stop", "skip", "roll_back"}));
    f("spike_factor", spike_factor,
      "treat a step as not finite if its loss or gradient norm exceeds this multiple of its "
      "running mean; 0: never",
      between(0, 1e9));
    f("max_skips", max_skips, "skipped steps in a row after which the run ends as diverged",
      at_least(1));
    f("max_roll_backs", max_roll_backs, "roll-backs after which the run ends as diverged",
      at_least(1));
  }
};

}  // namespace lra::training
