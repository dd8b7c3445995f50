// A suite's TOML file: its runs (tasks x models x seeds), their settings, those that it leaves out,
// and further measurements.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "cli/compute.h"
#include "cli/sweep.h"

namespace lra::cli {

struct SuiteSettings {
  std::string name, preset = "small";
  void fields(auto& f) {
    f("name", name, "name of the suite; its runs are in runs/NAME");
    f("preset", preset, "preset of every run");
  }
};

// [bench]: speed and memory of every model.
struct SuiteBench : BenchArguments {
  SuiteBench() { batch = 4, window_seconds = 0.5; }
  void fields(auto& f) {
    f("task", task, "task whose model is measured");
    f("preset", preset, "preset that is measured");
    f("batch", batch, "sequences per step", at_least(1));
    f("windows", windows, "timed windows; the median counts", at_least(1));
    f("window_seconds", window_seconds, "minimum length of a window", at_least(0));
  }
};

// [[leave_out]]: runs of these tasks with these models are not made.
struct LeftOut {
  std::vector<std::string> tasks, models;
  std::string reason;
  void fields(auto& f) { f("reason", reason, "why these runs are left out"); }
};

// The first line of the suites of `lra tune`.
inline constexpr std::string_view kTuneLine = "# Written by 'lra tune'.";

struct Suite {
  SuiteSettings settings;
  std::string folder;  // of its runs
  std::vector<std::string> tasks, models;
  std::vector<std::string> accept;  // checks of the data whose warnings are accepted
  std::vector<int64_t> seeds;
  ConfigTable common;  // [set]: for every run
  // [listops.train], [local.mixer] and the like; a model's override its task's.
  std::map<std::string, ConfigTable> by_task, by_model;
  std::vector<LeftOut> left_out;
  std::optional<Sweep> sweep;
  std::optional<BenchArguments> bench;

  // Held by whoever runs or submits the suite.
  std::string lock() const { return folder + "/.lock"; }
};

// Throws lra::Error for a file that is not TOML, a missing or ill-typed list, one with a duplicate
// entry, or an unknown key. models = ["all"] means every model; a suite without a name gets that of
// its file. Its runs are in the folder `out`; empty: in runs/NAME, or in that of the file if
// 'lra tune' wrote it there.
Suite read_suite(const std::string& file, const std::string& out = "");
// The same of the content of `file`.
Suite suite_of(ConfigTable table, const std::string& file, const std::string& out);

// Why the suite leaves out the runs of `model` on `task`, by the first section that names both;
// empty if it does not.
std::string reason_left_out(const Suite& suite, const std::string& task, const std::string& model);

}  // namespace lra::cli
