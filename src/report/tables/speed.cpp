#include "report/tables/speed.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "records/find_setting.h"
#include "report/lists.h"
#include "report/tables/paper_tables.h"
#include "report/tables/run_facts.h"
#include "report/tables/settings.h"
#include "report/tables/statistics.h"

namespace lra::report {
namespace {

constexpr std::string_view kYardstick = "transformer";

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return summarize(values).mean;
}

// Two runs with equal keys were made by the same code and kernels on the same machine.
auto conditions_of(const RunRecord& record) {
  const Provenance& p = record.provenance;
  return std::tuple(machine_of(p), p.git_revision, p.git_dirty, p.torch_version, p.kernels);
}

bool is_timed(const RunRecord& record) {
  return record.kind == "train" && record.status == RunStatus::kDone &&
         record.train_tokens_per_s > 0;
}

// The settings that decide how fast a training step is, the mixer and its dropout apart.
std::string workload_of(const ConfigTable& config) {
  static const std::map<std::string, std::set<std::string>> kept = {
      {"task", {}},  // all of them
      {"model", {"layers", "heads", "embed_dim", "qkv_dim", "mlp_dim", "dropout"}},
      {"train", {"batch_size", "trim_padding"}}};
  ConfigTable workload;
  for (const auto& [name, keys] : kept) {
    const ConfigValue* section = config.find(name);
    if (!section || !section->as_table()) continue;
    for (const auto& [key, value] : *section->as_table()) {
      if (keys.empty() || keys.contains(key)) workload.table(name).set(key, value);
    }
  }
  return canonical_text(workload);
}

std::string attention_dropout_of(const RunRecord& record) {
  const ConfigValue* rate = find_setting(record.config, "model", "attention_dropout");
  return rate ? setting_text(*rate) : "";
}

// Returns the Transformer that `record` is measured against, of `transformers` by their attention
// dropout: the one with the same rate, or else the only one. Some mechanisms have no such dropout
// (Reformer, BigBird).
template <typename T>
const T* yardstick_of(const RunRecord& record, const std::map<std::string, T>& transformers) {
  const auto same = transformers.find(attention_dropout_of(record));
  if (same != transformers.end()) return &same->second;
  return transformers.size() == 1 ? &transformers.begin()->second : nullptr;
}

// Mean of the Transformer's tokens per second at the same work under the conditions of `record`.
std::optional<double> yardstick_tokens_per_s(const RunRecord& record,
                                             const std::vector<RunRecord>& all) {
  std::map<std::string, std::vector<double>> speeds;
  for (const RunRecord& other : all) {
    if (other.model == kYardstick && is_timed(other) && other.task == record.task &&
        workload_of(other.config) == workload_of(record.config) &&
        conditions_of(other) == conditions_of(record)) {
      speeds[attention_dropout_of(other)].push_back(other.train_tokens_per_s);
    }
  }
  const auto* found = yardstick_of(record, speeds);
  return found ? mean_of(*found) : std::nullopt;
}

// The settings that a measurement depends on, except its length, which is shown next to it. Those
// of [train] are not among them.
ConfigTable bench_config(const RunRecord& record) {
  ConfigTable config = record.config;
  config.erase("run");
  config.erase("train");
  if (config.find("task")) config.table("task").erase("length");
  return config;
}

// Settings that must be equal for the measurements of two models to be comparable.
auto setting_of(const RunRecord& record, const Measurement& m) {
  return std::tuple(record.task, record.preset, m.mode, m.dtype, m.length, m.batch,
                    conditions_of(record), workload_of(bench_config(record)));
}

// A model with its own settings: of one in one setting, the latest measurement counts.
using ModelSettings = std::pair<std::string, SettingLines>;

ModelSettings model_of(const RunRecord& record) {
  return {record.model, setting_lines(bench_config(record))};
}

// Labels that set the measurements of one model, task, preset and mode by one program on one
// machine apart, in the order of `records`.
std::vector<std::string> settings_labels(const Runs& records) {
  const auto key_of = [](const RunRecord& r) {
    return std::tuple(r.model, r.task, r.preset, r.measurements.front().mode,
                      revision_of(r.provenance), machine_of(r.provenance));
  };
  std::map<decltype(key_of(*records[0])), std::set<SettingLines>> variants;
  for (const RunRecord* record : records) {
    variants[key_of(*record)].insert(model_of(*record).second);
  }
  return mapped(records, [&](const RunRecord* record) {
    return labels_apart(variants.at(key_of(*record))).at(model_of(*record).second);
  });
}

SpeedRow speed_row(const RunRecord& record, const std::string& settings, const Measurement& m) {
  SpeedRow row{.task = record.task,
               .model = record.model,
               .title = record.model_title,
               .preset = record.preset,
               .settings = settings,
               .machine = machine_of(record.provenance),
               .revision = revision_of(record.provenance),
               .device = device_of(record.provenance),
               .measured = m};
  if (paper_task(record.task) == PaperTask::kText) {
    row.paper_relative = paper_relative_speed(record.model, m.mode, m.length);
  }
  return row;
}

auto setting_of(const SpeedRow& row) {
  return std::tuple(row.task, row.preset, row.measured.mode, row.measured.dtype, row.measured.batch,
                    row.revision, row.machine);
}

int num_comparable(const SpeedGrid& grid) {
  int count = 0;
  for (const SpeedGridLine& line : grid.lines) {
    for (const auto& [length, row] : line.at) count += row->relative && row->paper_relative;
  }
  return count;
}

}  // namespace

CellSpeed cell_speed(const Runs& runs, const std::vector<RunRecord>& all) {
  CellSpeed speed;
  std::vector<double> tokens, steps, ratios;
  for (const RunRecord* run : runs) {
    if (run->status == RunStatus::kDone && peak_memory_bytes(*run) > 0) {
      speed.peak_memory_bytes =
          std::max(speed.peak_memory_bytes.value_or(0), peak_memory_bytes(*run));
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
  // A ratio of only some of the runs would be shown next to speeds it does not belong to.
  if (ratios.size() == tokens.size()) speed.relative = mean_of(ratios);
  return speed;
}

std::vector<SpeedRow> speed_rows(const std::vector<RunRecord>& records) {
  Runs by_time;
  for (const RunRecord& record : records) {
    if (!record.measurements.empty()) by_time.push_back(&record);
  }
  std::ranges::stable_sort(by_time, {},
                           [](const auto* record) { return record->provenance.finished_utc; });
  using Setting = decltype(setting_of(records[0], records[0].measurements[0]));
  using MeasuredRun = std::pair<const RunRecord*, SpeedRow>;
  std::map<Setting, std::map<ModelSettings, MeasuredRun>> settings;
  const std::vector<std::string> labels = settings_labels(by_time);
  for (size_t i = 0; i < by_time.size(); ++i) {
    const RunRecord& record = *by_time[i];
    for (const Measurement& m : record.measurements) {
      settings[setting_of(record, m)].insert_or_assign(
          model_of(record), MeasuredRun(&record, speed_row(record, labels[i], m)));
    }
  }
  std::vector<SpeedRow> rows;
  for (auto& [setting, models] : settings) {
    std::map<std::string, double> transformers;  // steps per second
    for (const auto& [model, run] : models) {
      if (model.first != kYardstick) continue;
      transformers.emplace(attention_dropout_of(*run.first), run.second.measured.steps_per_s);
    }
    const auto first = static_cast<std::ptrdiff_t>(rows.size());
    for (auto& [model, run] : models) {
      SpeedRow& row = rows.emplace_back(std::move(run.second));
      const double* yardstick = yardstick_of(*run.first, transformers);
      if (yardstick && *yardstick > 0) row.relative = row.measured.steps_per_s / *yardstick;
    }
    std::stable_sort(rows.begin() + first, rows.end(), [](const SpeedRow& a, const SpeedRow& b) {
      return a.measured.steps_per_s > b.measured.steps_per_s;
    });
  }
  return rows;
}

std::string SpeedGrid::setting() const {
  const std::string preset = any->preset.empty() ? "" : ", " + any->preset + " preset";
  return any->task + preset + ", " + any->measured.dtype + ", batch " +
         std::to_string(any->measured.batch) + ", revision " + any->revision + ", " + any->machine;
}

std::string SpeedGrid::name() const {
  return any->device + ", " + any->measured.dtype + ", batch " +
         std::to_string(any->measured.batch);
}

const SpeedRow* SpeedGrid::find(std::string_view model, int64_t length) const {
  const SpeedRow* any = nullptr;
  for (const SpeedGridLine& line : lines) {
    const SpeedRow* row = line.find(length);
    if (!row || !same_paper_model(line.model, model)) continue;
    if (row->settings.empty()) return row;
    if (!any) any = row;
  }
  return any;
}

std::vector<SpeedGrid> speed_grids(const std::vector<SpeedRow>& rows) {
  using Setting = decltype(setting_of(rows[0]));
  std::map<Setting, std::map<std::string, SpeedGridLine>> settings;
  for (const SpeedRow& row : rows) {
    const std::string title = row.title + (row.settings.empty() ? "" : " (" + row.settings + ")");
    SpeedGridLine& line = settings[setting_of(row)][title];
    line.model = row.model;
    line.title = title;
    line.at[row.measured.length] = &row;
  }
  std::vector<SpeedGrid> grids;
  for (const auto& [setting, lines] : settings) {
    SpeedGrid grid;
    for (const auto& [title, line] : lines) {
      for (const auto& [length, row] : line.at) {
        grid.lengths.insert(length);
        grid.any = row;
      }
      grid.lines.push_back(line);
    }
    std::ranges::stable_sort(grid.lines, {}, [](const SpeedGridLine& line) {
      return std::pair(paper_order(line.model), line.title);
    });
    grids.push_back(std::move(grid));
  }
  return grids;
}

const SpeedGrid* paper_grid(const std::vector<SpeedGrid>& grids, std::string_view mode) {
  const SpeedGrid* best = nullptr;
  for (const SpeedGrid& grid : grids) {
    if (grid.any->measured.mode != mode || num_comparable(grid) == 0) continue;
    if (!best || num_comparable(grid) > num_comparable(*best)) best = &grid;
  }
  return best;
}

}  // namespace lra::report
