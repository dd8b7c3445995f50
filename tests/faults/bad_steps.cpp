// Helper of bad_steps.py, with access to the library.
//
// Usage: bad_steps poison RUN TOKEN: gives one token of the newest checkpoint of a run weights that
// are finite but too large for a forward pass; hashes and progress stay right.
// bad_steps steps EXAMPLE EXAMPLES BATCH STEPS: prints the steps, from 1, whose batch holds an
// example of a training split, with seed 0.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "data/batch_order.h"
#include "training/run/checkpoint.h"
#include "training/run/make_model.h"
#include "training/run/test_runs.h"
#include "training/settings/stored_run.h"

namespace {

void poison(const lra::training::RunFolder& folder, int64_t token) {
  const auto config = lra::training::read_run(folder).config;
  const auto model = lra::training::make_model(config, config.make_task()->shape());
  lra::training::FlatParameters parameters(model);
  lra::training::CheckpointStore checkpoints = lra::training::store_of(folder);
  std::vector<std::string> problems;
  const auto progress = checkpoints.load_latest(parameters, &problems);
  if (!progress) throw std::runtime_error("there is no checkpoint in " + folder.path);
  lra::training::poison_token(parameters, token);
  checkpoints.save(parameters, *progress, progress->best_step == progress->step);
}

void print_steps(int64_t example, int64_t num_examples, int64_t batch, int64_t steps) {
  const lra::BatchOrder order(num_examples, batch, 0);
  std::vector<int64_t> indices(static_cast<size_t>(batch));
  for (int64_t step = 0; step < steps; ++step) {
    order.fill(step, indices);
    if (std::find(indices.begin(), indices.end(), example) == indices.end()) continue;
    std::printf("%lld\n", static_cast<long long>(step + 1));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string verb = argc > 1 ? argv[1] : "";
    const auto number = [&](int i) { return int64_t{std::stoll(argv[i])}; };
    if (verb == "poison" && argc == 4) {
      poison({argv[2]}, number(3));
    } else if (verb == "steps" && argc == 6) {
      print_steps(number(2), number(3), number(4), number(5));
    } else {
      throw std::runtime_error("expected poison RUN TOKEN, or steps EXAMPLE EXAMPLES BATCH STEPS");
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bad_steps: %s\n", error.what());
    return 1;
  }
}
