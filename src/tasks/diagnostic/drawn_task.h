// The common part of the diagnostic tasks (docs/diagnostics.md): examples are drawn, nothing is
// read from official files, and models answer at many places of a sequence.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tasks/task.h"

namespace lra::tasks {

// Settings of every drawn task.
struct DrawnSizes {
  int64_t num_train = 100000, num_val = 3000, num_test = 3000;
};
void size_fields(auto& f, auto& config) {
  f("num_train", config.num_train, "examples generated for training", between(0, 1e8));
  f("num_val", config.num_val, "examples generated for validation", between(0, 1e8));
  f("num_test", config.num_test, "examples generated for the test", between(0, 1e8));
}

class DrawnTask : public Task {
 public:
  // `settings` decide what an example is: data that was made with others is refused, except for
  // shorter sequences.
  DrawnTask(const TaskSpec& spec, TaskShape shape, DrawnSizes sizes,
            std::map<std::string, std::string> settings)
      : spec_(spec), shape_(shape), sizes_(sizes), settings_(std::move(settings)) {}

  TaskShape shape() const override { return shape_; }
  checks::InputKind input() const override { return checks::InputKind::kTokens; }
  int64_t token_bytes() const override { return shape_.vocabulary <= 256 ? 1 : 2; }
  void refuse_other_settings(const Dataset& dataset) const override;
  // The number of examples is that of whoever made them.
  checks::ExpectedData expected(const Dataset&) const override {
    return {.forbids_duplicates = true};
  }

  bool can_generate() const override { return true; }
  std::array<int64_t, 3> usual_sizes() const override {
    return {sizes_.num_train, sizes_.num_val, sizes_.num_test};
  }
  void make(const MakeOptions& options, Progress& progress) const override;
  ImportedData import(const std::vector<std::string>& sources, const std::string& out,
                      Progress& progress) const override;
  void export_official(const Dataset& dataset, const std::string& out) const override;

  std::vector<checks::Fact> check(const Dataset& dataset) const override;
  std::string render(const Split& split, int64_t example) const override;
  // Baselines over the labels at all places: the most frequent label, the most frequent one of the
  // token at the place, and the task's own.
  std::vector<checks::Baseline> baselines(const Dataset& dataset) const override;

 protected:
  // The token ids of an example, from 1 on.
  virtual std::vector<uint16_t> draw(RandomStream& random) const = 0;
  // The accuracy without the mechanism that the task asks for; nothing if it is chance.
  virtual std::optional<checks::Baseline> own_baseline() const { return std::nullopt; }

 private:
  struct Drawn;
  Drawn draw_example(uint64_t seed, int split, int64_t index, uint32_t redraw) const;
  void write(const Drawn& example, DatasetWriter& writer) const;
  checks::Fact label_fact(const Dataset& dataset, const std::string& name) const;

  const TaskSpec& spec_;
  TaskShape shape_;
  DrawnSizes sizes_;
  std::map<std::string, std::string> settings_;
};

}  // namespace lra::tasks
