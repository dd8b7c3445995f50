#include "report/tables/claims.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lra::report {
namespace {

constexpr double kHalfWidths = 1.96;  // of a 95 % interval, in standard errors

Finding gap_figure(const AnalysisRecord& record) {
  if (!record.generalization) return std::nullopt;
  return Measured{100 * record.generalization->gap,
                  100 * kHalfWidths * record.generalization->gap_error};
}

Finding steps_figure(const AnalysisRecord& record) {
  const Threshold* threshold = record.convergence ? record.convergence->at(0.35) : nullptr;
  if (!threshold) return std::nullopt;
  return Measured{threshold->step ? static_cast<double>(*threshold->step)
                                  : std::numeric_limits<double>::infinity(),
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
  return record.embeddings ? record.embeddings->intensity_correlation : std::nullopt;
}

Finding vertical_figure(const AnalysisRecord& record) {
  const auto& found = record.embeddings;
  if (!found || found->vertical.empty() || found->horizontal.empty()) return std::nullopt;
  return found->vertical[0] - found->horizontal[0];
}

class RecordEvidence final : public Evidence {
 public:
  RecordEvidence(const ReportInput& input, std::optional<std::string> preset)
      : input_(input), preset_(std::move(preset)) {}

  // The mean of one row's five figures, with the noise of independent ones.
  Finding average(std::string_view model) const override {
    return highest(model, [&](const Row& row) -> Finding {
      double sum = 0, squares = 0;
      int count = 0;
      for (size_t i = 0; i < input_.board.columns.size(); ++i) {
        if (!input_.board.columns[i].is_scored()) continue;
        const Finding cell = cell_finding(row.cells[i]);
        if (!cell) return std::nullopt;
        sum += cell->value;
        squares += cell->noise * cell->noise;
        ++count;
      }
      if (count != kNumScoredTasks) return std::nullopt;
      return Measured{sum / count, std::sqrt(squares) / count};
    });
  }

  Finding accuracy(std::string_view model, PaperTask task) const override {
    const auto column = std::ranges::find(input_.board.columns, task, &TaskColumn::paper);
    if (column == input_.board.columns.end()) return std::nullopt;
    const auto place = static_cast<size_t>(column - input_.board.columns.begin());
    return highest(model, [&](const Row& row) { return cell_finding(row.cells[place]); });
  }

  Finding speed(std::string_view model, std::string_view mode, int64_t length) const override {
    const SpeedRow* row = measured(model, mode, length);
    if (!row || !row->relative || row->measured.steps_per_s <= 0) return std::nullopt;
    const Measurement& m = row->measured;
    const double spread = (m.fastest_steps_per_s - m.slowest_steps_per_s) / 2 / m.steps_per_s;
    return Measured{*row->relative, *row->relative * std::max(0.0, spread)};
  }

  Finding memory(std::string_view model, int64_t length) const override {
    const SpeedRow* row = measured(model, "train", length);
    const int64_t bytes = row ? row->measured.peak_tensor_bytes : 0;
    if (bytes <= 0) return std::nullopt;
    // The rounding of memory blocks changes a peak by this much.
    constexpr double kRounding = 0.01;
    const double gb = static_cast<double>(bytes) / 1e9;
    return Measured{gb, kRounding * gb};
  }

  // The figure of the model's first analysis on the task that has one: they are sorted by path.
  Finding analysed(Analysed figure, std::string_view model, PaperTask task) const override {
    constexpr Finding (*kFigures[])(const AnalysisRecord& record) = {
        gap_figure, steps_figure, span_figure, gray_figure, vertical_figure};  // as of Analysed
    for (const Analysis& analysis : input_.options.analyses) {
      const AnalysisRecord& record = analysis.record;
      if (!same_paper_model(record.model, model) || paper_task(record.task) != task) continue;
      if (!belongs(record)) continue;
      if (const Finding found = kFigures[static_cast<size_t>(figure)](record)) return found;
    }
    return std::nullopt;
  }

 private:
  Finding cell_finding(const Cell& cell) const {
    const bool is_paper_task = cell.task_changes.empty() && !cell.has(MarkKind::kSuspect);
    const auto figure = preset_         ? cell.compared_accuracy()
                        : is_paper_task ? cell.shown_accuracy()
                                        : std::nullopt;
    if (!figure) return std::nullopt;
    return Measured{*figure, cell.interval.value_or(0)};
  }

  // The highest `figure` of the model's rows that count. The paper pretrains nothing.
  template <typename Figure>
  Finding highest(std::string_view model, const Figure& figure) const {
    Finding best;
    for (const Row& row : input_.board.rows) {
      if (!same_paper_model(row.model, model) || row.is_self_pretrained) continue;
      if (preset_ && row.preset != *preset_) continue;
      const Finding found = figure(row);
      if (!best || (found && found->value > best->value)) best = found;
    }
    return best;
  }

  // The model among the most informative measurements; null if it was not measured, if they are of
  // another preset than requested, or after a look at a few windows, whose spread says little.
  const SpeedRow* measured(std::string_view model, std::string_view mode, int64_t length) const {
    constexpr int64_t kLeastWindows = 5;
    const SpeedGrid* grid = paper_grid(input_.grids, mode);
    if (!grid || (preset_ && grid->any->preset != *preset_)) return nullptr;
    const SpeedRow* row = grid->find(model, length);
    return row && row->measured.windows >= kLeastWindows ? row : nullptr;
  }

  bool belongs(const AnalysisRecord& analysis) const {
    if (!suspicion_of(analysis.data_checks).empty()) return false;
    const auto run =
        std::ranges::find(input_.records, analysis.fingerprint, &RunRecord::fingerprint);
    const bool is_known = run != input_.records.end();
    if (is_known && !task_changes_of(*run).empty()) return false;
    if (!preset_) return true;
    return analysis.preset == *preset_ && is_known && has_figure(*run) &&
           shortfall_of(*run).empty() && run->published_setting;
  }

  const ReportInput& input_;
  const std::optional<std::string> preset_;  // nothing: all runs count
};

struct PaperEvidence final : Evidence {
  Finding average(std::string_view model) const override {
    return paper_average(*paper_model(model), PaperVersion::kV0);
  }
  Finding accuracy(std::string_view model, PaperTask task) const override {
    return paper_accuracy(*paper_model(model), task, PaperVersion::kV0);
  }
  Finding speed(std::string_view model, std::string_view mode, int64_t length) const override {
    return paper_relative_speed(model, mode, length);
  }
  Finding memory(std::string_view model, int64_t length) const override {
    return paper_memory(model, length);
  }
  Finding analysed(Analysed figure, std::string_view model, PaperTask task) const override {
    const PaperModel& row = *paper_model(model);
    if (figure == Analysed::kStepsTo35) return row.steps_to_35;
    if (figure != Analysed::kGap) return std::nullopt;
    return row.image_train_accuracy - *paper_accuracy(row, task, PaperVersion::kV0);
  }
};

}  // namespace

std::unique_ptr<const Evidence> paper_evidence() { return std::make_unique<PaperEvidence>(); }

std::unique_ptr<const Evidence> record_evidence(const ReportInput& input,
                                                std::optional<std::string> preset) {
  return std::make_unique<RecordEvidence>(input, std::move(preset));
}

}  // namespace lra::report
