// The figures of the paper: Tay et al., Long Range Arena, ICLR 2021, camera-ready text.
//
// Tables 1 and 7 are version 0 of the leaderboard (submission, September 2020); Table 6 is version
// 1 (March 2021), in which only ListOps was run again, with up to 10K steps. So a model has one row
// here and one extra figure. No model has a Path-X figure: the paper prints FAIL for all of them.
// All accuracies are in percent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace lra::report {

enum class PaperTask { kListops, kText, kRetrieval, kImage, kPathfinder, kPathX };
inline constexpr int kNumScoredTasks = 5;  // the average leaves Path-X out
inline constexpr int kNumPaperTasks = 6;

enum class PaperVersion { kV0, kV1 };

inline constexpr std::array<int, 4> kPaperLengths = {1024, 2048, 3072, 4096};
inline constexpr int kPaperBatch = 32;

// Tables 2 (training) and 4 (inference): byte-level text, batch 32 on 16 TPU v3 chips, one example
// per core; steps per second, and peak memory per device in GB, by kPaperLengths.
struct PaperSpeeds {
  std::array<double, 4> train_steps_per_s, memory_gb, infer_steps_per_s;
};

struct PaperModel {
  std::string_view name, label;
  std::array<double, kNumScoredTasks>
      v0;  // in the order of PaperTask, Path-X (always FAIL) left out
  double listops_v1;
  double image_train_accuracy;             // Table 3, whose test figure is that of v0
  int steps_to_30, steps_to_35;            // Table 5: until validation accuracy on Image reaches it
  std::optional<PaperSpeeds> speeds = {};  // nothing for models that were not timed
};

std::span<const PaperModel> paper_models();

// The chance row as the paper prints it, in the order of PaperTask, with Path-X.
inline constexpr std::array<double, kNumPaperTasks> kPaperChance = {10, 50, 50, 10, 50, 50};

// Two trivial classifiers for ListOps, measured on 49861 generated trees (not in the paper): always
// the most common label, and the most common label given only the root operator.
inline constexpr double kListopsMajority = 17.3, kListopsRootOperator = 36.5;

// Looks up a task by the name in our records. Path-X is pathfinder at 128 x 128; Pathfinder is 32
// x 32.
std::optional<PaperTask> paper_task(std::string_view task);
// Column title, "Path-X".
std::string_view paper_task_title(PaperTask task);
// Null for a model the paper does not have. "sparse" and "linear" are taken for the full names.
const PaperModel* paper_model(std::string_view model);

// Place in the paper's tables, from 0; behind them all for other models and tasks.
int paper_order(std::string_view model);
int task_order(std::string_view task);
// True if both are names of one model: "sparse" is "sparse_transformer".
bool same_paper_model(std::string_view a, std::string_view b);

// Accuracy in the paper; nothing for Path-X.
std::optional<double> paper_accuracy(const PaperModel& model, PaperTask task, PaperVersion version);
// Mean of the five scored tasks, computed from the row (the printed averages are not all right).
double paper_average(const PaperModel& model, PaperVersion version);

// Speed relative to the Transformer, computed from the steps per second of Table 2 ("train") or 4
// ("infer"); nothing for a length, model or mode the paper did not measure.
std::optional<double> paper_relative_speed(std::string_view model, std::string_view mode,
                                           int64_t length);

// Gigabytes per device of Table 2; nothing for a length or model the paper did not measure.
std::optional<double> paper_memory(std::string_view model, int64_t length);

// Slips and silences of the paper a reader of the comparison has to know, one sentence or two each.
std::span<const std::string_view> paper_notes();

}  // namespace lra::report
