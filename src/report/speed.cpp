#include "report/speed.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "report/paper_tables.h"
#include "report/statistics.h"

namespace lra::report {
namespace {

constexpr std::string_view kYardstick = "transformer";

// Two runs with equal keys were made by the same code on the same machine.
auto conditions_of(const RunRecord& record) {
  const Provenance& p = record.provenance;
  return std::tuple(machine_of(p), p.git_revision, p.git_dirty, p.torch_version);
}

bool is_timed(const RunRecord& record) {
  return record.kind == "train" && record.status == RunStatus::kDone &&
         record.train_tokens_per_s > 0;
}

// Mean of the Transformer's tokens per second under the conditions of `record`.
std::optional<double> yardstick_tokens_per_s(const RunRecord& record,
                                             const std::vector<RunRecord>& all) {
  std::vector<double> speeds;
  for (const RunRecord& other : all) {
    if (other.model == kYardstick && is_timed(other) && other.task == record.task &&
        other.preset == record.preset && conditions_of(other) == conditions_of(record)) {
      speeds.push_back(other.train_tokens_per_s);
    }
  }
  if (speeds.empty()) return std::nullopt;
  return summarize(speeds).mean;
}

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return summarize(values).mean;
}

// What has to be equal for two measurements to be the same one, or, without the model, comparable.
auto setting_of(const RunRecord& record, const Measurement& m) {
  return std::tuple(record.task, m.mode, m.dtype, m.length, m.batch, conditions_of(record));
}

struct Measured {
  const RunRecord* record;
  const Measurement* measurement;
};

SpeedRow speed_row(const Measured& measured, const Measured* yardstick) {
  const RunRecord& record = *measured.record;
  SpeedRow row{.task = record.task,
               .model = record.model,
               .title = record.model_title.empty() ? record.model : record.model_title,
               .machine = machine_of(record.provenance),
               .measured = *measured.measurement,
               .relative = std::nullopt,
               .paper_relative = std::nullopt};
  if (yardstick && yardstick->measurement->steps_per_s > 0) {
    row.relative = row.measured.steps_per_s / yardstick->measurement->steps_per_s;
  }
  if (paper_task(record.task) == PaperTask::kText) {
    row.paper_relative = paper_relative_speed(record.model, row.measured.mode,
                                              static_cast<int>(row.measured.length));
  }
  return row;
}

}  // namespace

std::string machine_of(const Provenance& p) {
  std::string text = p.processor.empty() ? "unknown processor" : p.processor;
  text += ", " + std::to_string(p.threads) + (p.threads == 1 ? " thread" : " threads");
  if (!p.device.empty()) text += ", " + p.device;
  if (!p.isa.empty()) text += ", " + p.isa;
  return text;
}

std::string revision_of(const Provenance& p) {
  const std::string revision = p.git_revision.empty() ? "unknown" : p.git_revision.substr(0, 10);
  return p.git_dirty.empty() ? revision : revision + "+changes";
}

CellSpeed cell_speed(const std::vector<const RunRecord*>& runs, const std::vector<RunRecord>& all) {
  CellSpeed speed;
  std::vector<double> tokens, steps, ratios;
  for (const RunRecord* run : runs) {
    if (run->status == RunStatus::kDone && run->peak_resident_bytes > 0) {
      speed.peak_resident_bytes =
          std::max(speed.peak_resident_bytes.value_or(0), run->peak_resident_bytes);
    }
    if (!is_timed(*run)) continue;
    tokens.push_back(run->train_tokens_per_s);
    if (run->train_seconds > 0) {
      steps.push_back(static_cast<double>(run->steps) / run->train_seconds);
    }
    if (const auto yardstick = yardstick_tokens_per_s(*run, all)) {
      ratios.push_back(run->train_tokens_per_s / *yardstick);
    }
  }
  speed.tokens_per_s = mean_of(tokens);
  speed.steps_per_s = mean_of(steps);
  // A ratio that stands for some of the runs only would be set beside speeds it does not belong to.
  if (ratios.size() == tokens.size()) speed.relative = mean_of(ratios);
  return speed;
}

std::vector<SpeedRow> speed_rows(const std::vector<RunRecord>& records) {
  std::vector<const RunRecord*> by_time;
  for (const RunRecord& record : records) by_time.push_back(&record);
  std::stable_sort(by_time.begin(), by_time.end(), [](const auto* a, const auto* b) {
    return a->provenance.finished_utc < b->provenance.finished_utc;
  });
  using Setting = decltype(setting_of(records[0], records[0].measurements[0]));
  std::map<Setting, std::map<std::string, Measured>> settings;
  for (const RunRecord* record : by_time) {
    for (const Measurement& m : record->measurements) {
      settings[setting_of(*record, m)].insert_or_assign(record->model, Measured{record, &m});
    }
  }
  std::vector<SpeedRow> rows;
  for (const auto& [setting, models] : settings) {
    const auto yardstick = models.find(std::string(kYardstick));
    const auto first = static_cast<std::ptrdiff_t>(rows.size());
    for (const auto& [model, measured] : models) {
      rows.push_back(speed_row(measured, yardstick == models.end() ? nullptr : &yardstick->second));
    }
    std::stable_sort(rows.begin() + first, rows.end(), [](const SpeedRow& a, const SpeedRow& b) {
      return a.measured.steps_per_s > b.measured.steps_per_s;
    });
  }
  return rows;
}

}  // namespace lra::report
