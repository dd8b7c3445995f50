#include "report/tables/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/tables/marks.h"
#include "report/tables/run_facts.h"

namespace lra::report {
namespace {

constexpr double kHalfWidths = 1.96;  // of a 95 % interval, in standard errors
constexpr double kInfinite = std::numeric_limits<double>::infinity();

Finding exact(std::optional<double> value) {
  if (!value) return std::nullopt;
  return Measured{*value, 0};
}

// The runs that count: those of the whole budget in the setting of one preset, or all.
struct Selection {
  std::optional<std::string> preset;

  // The paper pretrains nothing.
  bool takes(const Row& row) const {
    return !row.is_self_pretrained && (!preset || row.preset == *preset);
  }
  std::optional<double> figure(const Cell& cell) const {
    if (preset) return cell.compared_accuracy();
    const bool is_paper_task = cell.task_changes.empty() && !cell.has(MarkKind::kSuspect);
    return is_paper_task ? cell.shown_accuracy() : std::nullopt;
  }
};

Finding cell_finding(const Cell& cell, const Selection& selection) {
  const auto figure = selection.figure(cell);
  if (!figure) return std::nullopt;
  return Measured{*figure, cell.interval.value_or(0)};
}

// The highest `figure` of the model's rows.
template <typename Figure>
Finding highest(const Leaderboard& board, const Selection& selection, std::string_view model,
                const Figure& figure) {
  Finding best;
  for (const Row& row : board.rows) {
    if (!same_paper_model(row.model, model) || !selection.takes(row)) continue;
    const Finding found = figure(row);
    if (!best || (found && found->value > best->value)) best = found;
  }
  return best;
}

Finding accuracy_of(const Leaderboard& board, const Selection& selection, std::string_view model,
                    PaperTask task) {
  const auto column = std::ranges::find(board.columns, task, &TaskColumn::paper);
  if (column == board.columns.end()) return std::nullopt;
  const auto place = static_cast<size_t>(column - board.columns.begin());
  return highest(board, selection, model,
                 [&](const Row& row) { return cell_finding(row.cells[place], selection); });
}

// Mean of one row's five figures; the noise of independent ones.
Finding row_average(const Leaderboard& board, const Row& row, const Selection& selection) {
  double sum = 0, squares = 0;
  int count = 0;
  for (size_t i = 0; i < board.columns.size(); ++i) {
    const auto& task = board.columns[i].paper;
    if (!task || *task == PaperTask::kPathX) continue;
    const Finding cell = cell_finding(row.cells[i], selection);
    if (!cell) return std::nullopt;
    sum += cell->value;
    squares += cell->noise * cell->noise;
    ++count;
  }
  if (count != kNumScoredTasks) return std::nullopt;
  return Measured{sum / count, std::sqrt(squares) / count};
}

Finding average_of(const Leaderboard& board, const Selection& selection, std::string_view model) {
  return highest(board, selection, model,
                 [&](const Row& row) { return row_average(board, row, selection); });
}

// The model among the most informative measurements; null if it was not measured, if they are of
// another preset than requested, or after a look at a few windows, whose spread says little.
const SpeedRow* measured(const ReportInput& input, const Selection& selection,
                         std::string_view model, std::string_view mode, int64_t length) {
  constexpr int64_t kLeastWindows = 5;
  const SpeedGrid* grid = paper_grid(input.grids, mode);
  if (!grid || (selection.preset && grid->preset != *selection.preset)) return nullptr;
  const SpeedRow* row = grid->find(model, length);
  return row && row->measured.windows >= kLeastWindows ? row : nullptr;
}

Finding speed_of(const ReportInput& input, const Selection& selection, std::string_view model,
                 std::string_view mode, int64_t length) {
  const SpeedRow* row = measured(input, selection, model, mode, length);
  if (!row || !row->relative || row->measured.steps_per_s <= 0) return std::nullopt;
  const Measurement& m = row->measured;
  const double spread = (m.fastest_steps_per_s - m.slowest_steps_per_s) / 2 / m.steps_per_s;
  return Measured{*row->relative, *row->relative * std::max(0.0, spread)};
}

Finding memory_of(const ReportInput& input, const Selection& selection, std::string_view model,
                  int64_t length) {
  const SpeedRow* row = measured(input, selection, model, "train", length);
  const int64_t bytes = row ? row->measured.peak_tensor_bytes : 0;
  if (bytes <= 0) return std::nullopt;
  // The rounding of memory blocks changes a peak by this much.
  constexpr double kRounding = 0.01;
  const double gb = static_cast<double>(bytes) / 1e9;
  return Measured{gb, kRounding * gb};
}

bool belongs(const ReportInput& input, const AnalysisRecord& analysis, const Selection& selection) {
  if (!suspicion_of(analysis.data_checks).empty()) return false;
  const auto run = std::ranges::find(input.records, analysis.fingerprint, &RunRecord::fingerprint);
  const bool is_known = run != input.records.end();
  if (is_known && !task_changes_of(*run).empty()) return false;
  if (!selection.preset) return true;
  return analysis.preset == *selection.preset && is_known && has_figure(*run) &&
         shortfall_of(*run).empty() && run->published_setting;
}

// The figure of the model's first analysis on the task that has one: they are sorted by path.
template <typename Figure>
Finding analysed(const ReportInput& input, const Selection& selection, std::string_view model,
                 PaperTask task, const Figure& figure) {
  for (const Analysis& analysis : input.analyses) {
    const AnalysisRecord& record = analysis.record;
    if (!same_paper_model(record.model, model) || paper_task(record.task) != task) continue;
    if (!belongs(input, record, selection)) continue;
    if (const Finding found = figure(record)) return found;
  }
  return std::nullopt;
}

Finding gap_figure(const AnalysisRecord& record) {
  if (!record.generalization) return std::nullopt;
  return Measured{100 * record.generalization->gap,
                  100 * kHalfWidths * record.generalization->gap_error};
}

Finding steps_figure(const AnalysisRecord& record) {
  const Threshold* threshold = record.convergence ? record.convergence->at(0.35) : nullptr;
  if (!threshold) return std::nullopt;
  return Measured{threshold->step ? static_cast<double>(*threshold->step) : kInfinite,
                  static_cast<double>(record.convergence->eval_every)};
}

Finding span_figure(const AnalysisRecord& record) {
  if (!record.span || record.span->mean_length <= 0) return std::nullopt;
  const SpanFigures& span = record.span->tokens;
  const double examples = std::max<double>(1, static_cast<double>(record.num_examples));
  return Measured{span.mean / record.span->mean_length,
                  kHalfWidths * span.deviation / std::sqrt(examples) / record.span->mean_length};
}

Finding gray_figure(const AnalysisRecord& record) {
  return record.embeddings ? exact(record.embeddings->intensity_correlation) : std::nullopt;
}

Finding vertical_figure(const AnalysisRecord& record) {
  const auto& found = record.embeddings;
  if (!found || found->vertical.empty() || found->horizontal.empty()) return std::nullopt;
  return Measured{found->vertical[0] - found->horizontal[0], 0};
}

Evidence evidence_of(const ReportInput& input, const Selection& selection) {
  constexpr std::string_view kYardstick = "transformer";
  const ReportInput* in = &input;
  const auto on_image = [in, selection](std::string_view model,
                                        Finding (*figure)(const AnalysisRecord&)) {
    return analysed(*in, selection, model, PaperTask::kImage, figure);
  };
  return {
      .average = [in, selection](auto model) { return average_of(in->board, selection, model); },
      .accuracy = [in, selection](
                      auto model,
                      auto task) { return accuracy_of(in->board, selection, model, task); },
      .speed = [in, selection](
                   auto model, auto mode,
                   auto length) { return speed_of(*in, selection, model, mode, length); },
      .memory = [in, selection](auto model,
                                auto length) { return memory_of(*in, selection, model, length); },
      .gap = [on_image](auto model) { return on_image(model, gap_figure); },
      .steps_to_35 = [on_image](auto model) { return on_image(model, steps_figure); },
      .span =
          [in, selection, kYardstick](PaperTask task) {
            return analysed(*in, selection, kYardstick, task, span_figure);
          },
      .gray_correlation = [on_image, kYardstick] { return on_image(kYardstick, gray_figure); },
      .vertical_lead = [on_image, kYardstick] { return on_image(kYardstick, vertical_figure); }};
}

Finding paper_gap(std::string_view model) {
  const PaperGeneralization* row = paper_generalization(model);
  if (!row) return std::nullopt;
  const double test = *paper_accuracy(*paper_model(model), PaperTask::kImage, PaperVersion::kV0);
  return Measured{row->train_accuracy - test, 0};
}

}  // namespace

Evidence paper_evidence() {
  return {
      .average =
          [](auto model) { return exact(paper_average(*paper_model(model), PaperVersion::kV0)); },
      .accuracy =
          [](auto model, auto task) {
            return exact(paper_accuracy(*paper_model(model), task, PaperVersion::kV0));
          },
      .speed = [](auto model, auto mode,
                  auto length) { return exact(paper_relative_speed(model, mode, length)); },
      .memory = [](auto model, auto length) { return exact(paper_memory(model, length)); },
      .gap = [](auto model) { return paper_gap(model); },
      .steps_to_35 = [](auto model) -> Finding {
        const PaperConvergence* row = paper_convergence(model);
        if (!row) return std::nullopt;
        return Measured{static_cast<double>(row->steps_to_35), 0};
      },
      .span = [](PaperTask) { return Finding(); },
      .gray_correlation = [] { return Finding(); },
      .vertical_lead = [] { return Finding(); }};
}

Evidence full_evidence(const ReportInput& input, std::string preset) {
  return evidence_of(input, {std::move(preset)});
}

Evidence weak_evidence(const ReportInput& input) { return evidence_of(input, {}); }

}  // namespace lra::report
