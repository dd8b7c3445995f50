// Fixtures of the tests of whole runs: folders of tiny runs, and comparisons of how they ended.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "training/loop/trainer.h"
#include "training/run/test_runs.h"

namespace lra::training {

namespace fs = std::filesystem;

class TinyTraining : public ::testing::Test {
 protected:
  TinyTraining() { fs::create_directories(scratch_.file("data")); }
  RunFolder folder(const std::string& name) const { return {scratch_.file(name)}; }

  RunRecord run(const RunConfig& config, const std::string& name, bool resume = false) const {
    TrainOptions options;
    options.resume = resume;
    return run_with(options, config, name);
  }
  RunRecord run_with(TrainOptions options, const RunConfig& config, const std::string& name) const {
    options.data_root = scratch_.file("data");
    options.quiet = true;
    return Trainer(prepare_run(config, folder(name), options)).run();
  }
  RunRecord resume(const RunConfig& config, const std::string& name) const {
    return run(config, name, true);
  }
  std::string step_folder(const std::string& name, int64_t step) const {
    return folder(name).checkpoints() + "/step_" + std::to_string(step);
  }
  // A copy of a run that died after `step`: its later checkpoints were never written.
  void copy_killed_after(const std::string& from, const std::string& to, int64_t step) const {
    fs::copy(folder(from).path, folder(to).path,
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    std::vector<fs::path> later;
    for (const auto& entry : fs::directory_iterator(folder(to).checkpoints())) {
      const std::string name = entry.path().filename();
      if (name.starts_with("step_") && std::stoll(name.substr(5)) > step) {
        later.push_back(entry.path());
      }
    }
    for (const fs::path& path : later) fs::remove_all(path);
  }
  // Bytes of both files of a checkpoint, and what else must not depend on interruptions.
  void expect_same_end(const RunRecord& a, const std::string& a_name, const RunRecord& b,
                       const std::string& b_name) const {
    ASSERT_EQ(a.status, RunStatus::kDone);
    ASSERT_EQ(b.status, RunStatus::kDone);
    for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
      EXPECT_TRUE(read_file(step_folder(a_name, a.steps) + file, 1 << 20) ==
                  read_file(step_folder(b_name, b.steps) + file, 1 << 20))
          << file;
    }
    EXPECT_EQ(a.weights_hash, b.weights_hash);
    EXPECT_EQ(a.fingerprint, b.fingerprint);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.computed_tokens, b.computed_tokens);
    EXPECT_EQ(a.test->loss, b.test->loss);
    EXPECT_EQ(a.best_val->step, b.best_val->step);
    ASSERT_EQ(a.val_curve.size(), b.val_curve.size());
    for (size_t i = 0; i < a.val_curve.size(); ++i) {
      EXPECT_EQ(a.val_curve[i].step, b.val_curve[i].step);
      EXPECT_EQ(a.val_curve[i].loss, b.val_curve[i].loss);
    }
  }
  // (kind, step) of every line of metrics.jsonl, and the losses of the training lines.
  std::vector<std::pair<std::string, int64_t>> metric_lines(const std::string& name,
                                                            std::vector<double>* losses) const {
    std::vector<std::pair<std::string, int64_t>> lines;
    std::ifstream in(folder(name).metrics());
    for (std::string line; std::getline(in, line);) {
      const Json json = parse_json(line, "metrics.jsonl");
      lines.emplace_back(json.at("kind").get<std::string>(), json.at("step").get<int64_t>());
      if (lines.back().first == "train") losses->push_back(json.at("loss").get<double>());
    }
    return lines;
  }

  OneThread one_thread_;
  ScratchFolder scratch_;
};

// Every checkpoint stays, so that any point of the run can be gone back to.
inline RunConfig kept_run(const std::vector<std::string>& sets = {}, uint64_t seed = 3) {
  std::vector<std::string> all = {"train.keep_checkpoints=1000"};
  all.insert(all.end(), sets.begin(), sets.end());
  return tiny_run(all, "transformer", seed);
}

inline double mean(const std::vector<double>& values, size_t begin, size_t count) {
  double sum = 0;
  for (size_t i = begin; i < begin + count; ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

}  // namespace lra::training
