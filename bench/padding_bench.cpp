// Training steps on real batches: every row as long as the task, as long as the longest row, and in
// groups of like length (models/layout.h).
//
// Usage: bench_padding DATA TASK LENGTH ROUNDS MODEL[,MODEL...] [SETTING=VALUE...]
//
// DATA holds prepared data, as --data of lra. Settings are those of --set, over the preset release.
// The first batch of training, in turns; medians of ROUNDS. Positions: computed, over valid tokens
// of the first 100 batches. Peak: of tensors. On one thread (OMP_NUM_THREADS=1) processor time
// counts. The last row is of a batch that groups cannot gain from, all of its examples as long as
// the longest (padding counts as tokens): groups beside the cut, in turns of their own.
#include <cstdio>
#include <optional>
#include <sstream>

#include "bench/side_by_side.h"
#include "mixers/all.h"
#include "models/classifier.h"
#include "tasks/prepare_data.h"
#include "training/loop/batches.h"
#include "training/loop/stepper.h"
#include "training/ranks/flat_parameters.h"
#include "training/run/tensor_memory.h"
#include "training/settings/presets.h"
#include "training/settings/run_config.h"

namespace lra {
namespace {

using training::RunConfig;

struct Way {
  const char* name;
  bool trim;
  std::optional<int64_t> group_cost;
};
constexpr Way kWays[] = {{"full length", false, {}},
                         {"cut to the longest", true, {}},
                         {"groups", true, models::kGroupCost}};

// One model, computed in one way.
class Steps {
 public:
  Steps(const RunConfig& run, const TaskShape& shape, const Split& split, const Way& way)
      : run_(run),
        shape_(shape),
        split_(split),
        way_(way),
        model_(shape, run.model_config, run.mixer_spec(), run.mixer_settings, run.seed,
               {.group_cost = way.group_cost}),
        parameters_(model_),
        stepper_(model_, parameters_, run.train, run.seed),
        batch_(loader().next().at(0)) {}

  void make_lengths_equal() {
    batch_.input.lengths_B.fill_(batch_.input.length());
    batch_.num_tokens = batch_.input.rows() * batch_.input.length();
  }

  void step() { (void)stepper_.gradients(std::span(&batch_, 1), 0); }

  double positions_per_token() const {
    constexpr int kBatches = 100;
    const BatchOrder order(split_.size(), run_.train.batch_size, run_.seed);
    int64_t positions = 0, tokens = 0;
    for (int step = 0; step < kBatches; ++step) {
      const auto examples = training::micro_batches(order, step, {}).at(0);
      positions += model_.num_positions(training::input_shape(split_, examples, shape_, way_.trim));
      tokens += training::make_batch(split_, examples, shape_, true).num_tokens;
    }
    return static_cast<double>(positions) / static_cast<double>(tokens);
  }

  double peak_megabytes() {
    const training::TensorMemory memory;
    step();
    return static_cast<double>(memory.peak_bytes()) * 1e-6;
  }

  int64_t num_tokens() const { return batch_.num_tokens; }

 private:
  training::BatchLoader loader() const {
    return {split_,
            shape_,
            BatchOrder(split_.size(), run_.train.batch_size, run_.seed),
            0,
            {.trim = way_.trim}};
  }

  const RunConfig& run_;
  const TaskShape& shape_;
  const Split& split_;
  const Way& way_;
  models::SequenceClassifier model_;
  training::FlatParameters parameters_;
  training::Stepper stepper_;
  training::Batch batch_;
};

void measure(const RunConfig& run, const std::string& data, int rounds) {
  const auto task = run.make_task();
  const TaskShape shape = task->shape();
  const Split split = task->split(tasks::prepare_data(run.task_spec(), *task, data, true), "train");
  std::vector<std::unique_ptr<Steps>> ways;
  std::vector<double> peaks;
  for (const Way& way : kWays) {
    ways.push_back(std::make_unique<Steps>(run, shape, split, way));
    peaks.push_back(ways.back()->peak_megabytes());
  }
  std::vector<std::vector<double>> seconds(ways.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i) {
      seconds[i].push_back(seconds_of([&] { ways[i]->step(); }));
    }
  }
  for (size_t i = 0; i < ways.size(); ++i) {
    const double time = median(seconds[i]);
    std::printf("| %s | %s | %.2f | %.0f | %.2f | %.0f |\n", run.model.c_str(), kWays[i].name,
                ways[i]->positions_per_token(), static_cast<double>(ways[i]->num_tokens()) / time,
                median(seconds[1]) / time, peaks[i]);
    std::fflush(stdout);
  }
  Steps &cut = *ways[1], &groups = *ways[2];
  cut.make_lengths_equal();
  groups.make_lengths_equal();
  const SideBySide times = side_by_side(
      rounds, [&] { groups.step(); }, [&] { cut.step(); });
  std::printf("| %s | groups, equal lengths | 1.00 | %.0f | %.3f | - |\n", run.model.c_str(),
              static_cast<double>(groups.num_tokens()) / times.ours_s, times.ratio());
}

void run(const std::vector<std::string>& words) {
  training::keep_tensors_in_arena();
  std::vector<std::string> sets(words.begin() + 5, words.end());
  sets.push_back("task.length=" + words[2]);
  std::printf("| model | rows | positions a token | tokens/s | speed | peak MB |\n");
  std::printf("| --- | --- | ---: | ---: | ---: | ---: |\n");
  std::istringstream models(words[4]);
  for (std::string model; std::getline(models, model, ',');) {
    measure(training::resolve_run(words[1], model, "release", 0, {}, sets), words[0],
            std::stoi(words[3]));
  }
}

}  // namespace
}  // namespace lra

int main(int argc, char** argv) {
  try {
    if (argc < 6) {
      std::fprintf(stderr,
                   "usage: bench_padding DATA TASK LENGTH ROUNDS MODEL[,MODEL...] [SET...]\n");
      return 2;
    }
    lra::run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_padding: %s\n", error.what());
    return 1;
  }
}
