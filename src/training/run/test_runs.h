// Fixtures of the tests of the trainer and of the analyses: runs and data sets that take
// milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "data/dataset.h"
#include "records/run_identity.h"
#include "records/run_record.h"
#include "training/ranks/flat_parameters.h"
#include "training/run/checkpoint.h"
#include "training/settings/presets.h"
#include "training/settings/run_config.h"
#include "training/settings/run_folder.h"

namespace lra::training {

// Tiny models gain nothing from threads, and lose seconds when the machine has other work: the
// threads of each operation wait for each other.
class OneThread {
 public:
  OneThread() { set_num_threads(1); }
  ~OneThread() { set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_ = num_threads();
};

// A model of about 5,000 parameters on ListOps expressions of at most 39 symbols; `sets` as in
// --set.
inline RunConfig tiny_run(const std::vector<std::string>& sets = {},
                          const std::string& model = "transformer", uint64_t seed = 3) {
  std::vector<std::string> all = {
      "task.length=40",       "task.min_length=4",       "task.max_length=40",
      "task.max_depth=4",     "task.max_args=4",         "task.num_train=64",
      "task.num_val=24",      "task.num_test=30",        "model.layers=1",
      "model.heads=2",        "model.embed_dim=16",      "model.qkv_dim=16",
      "model.mlp_dim=16",     "train.batch_size=8",      "train.checkpoint_every=1",
      "train.eval_every=4",   "train.schedule=constant", "train.learning_rate=3e-3",
      "train.warmup_steps=0", "train.log_every=1",       "train.eval_batch_size=16"};
  const bool has_length = std::ranges::any_of(sets, [](const std::string& set) {
    return set.starts_with("train.epochs=") || set.starts_with("train.examples=");
  });
  if (!has_length) all.push_back("train.steps=12");
  all.insert(all.end(), sets.begin(), sets.end());
  return resolve_run("listops", model, "small", seed, {}, all);
}

// Weights of one token so large, though finite, that a forward pass over that token is not:
// what dropout keeps of them is infinite, and without it so is the sum of their squares.
inline void poison_token(FlatParameters& parameters, int64_t token) {
  for (const auto& part : parameters.parts()) {
    if (part.name != "embedding.token") continue;
    const at::Tensor row =
        parameters.values.narrow(0, part.offset, part.count).view(part.shape).select(0, token);
    row.fill_(3.3e38);
    row.slice(0, 0, at::nullopt, 2).neg_();
  }
}

// The checkpoints of a run.
inline CheckpointStore store_of(const RunFolder& folder) {
  return {folder.checkpoints(), 1000, identities_of(read_record(folder.record()))};
}

struct TestExample {
  int32_t label;
  std::vector<std::vector<uint8_t>> towers;  // stored values; an id is one more
};

// Writes the examples as split "train" of a new prepared folder and opens it.
inline Split write_split(const std::string& folder, const std::vector<TestExample>& examples) {
  Manifest manifest;
  manifest.task = "made-for-a-test";
  manifest.source = "generated";
  manifest.num_towers = static_cast<int64_t>(examples.front().towers.size());
  manifest.token_offset = 1;
  DatasetWriter writer(folder, manifest, 0);
  writer.begin_split("train");
  for (const TestExample& example : examples) {
    const std::vector<std::span<const uint8_t>> towers(example.towers.begin(),
                                                       example.towers.end());
    writer.add(example.label, towers);
  }
  writer.finish();
  return Dataset::open(folder).split("train");
}

}  // namespace lra::training
