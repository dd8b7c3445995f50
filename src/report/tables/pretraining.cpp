// Runs that predict masked inputs have no result of their task: a list of their own, without ranks.
#include "base/text_format.h"
#include "records/find_setting.h"
#include "report/tables/tables.h"

namespace lra::report {

Table pretraining_table(const std::vector<RunRecord>& records) {
  Table table{.title = "Masked pretraining",
              .caption =
                  "Accuracy and loss of the last validation, at the hidden positions. These runs "
                  "learn no labels: they are in no other table.",
              .header = {"Task", "Model", "Preset", "Seed", "Steps", "Hidden", "Accuracy", "Loss",
                         "Status"},
              .num_left = 3,
              .num_keys = 2};
  for (const RunRecord& run : records) {
    if (run.kind != "train" || !is_masked_run(run.config)) continue;
    const bool has_positions = run.val && run.val->num_positions;
    table.rows.push_back({{shown_task(run)},
                          {run.model_title},
                          {run.preset},
                          {std::to_string(run.seed)},
                          {thousands(run.steps)},
                          {has_positions ? thousands(*run.val->num_positions) : "-"},
                          {run.val ? fixed(100 * run.val->accuracy, 2) : "-"},
                          {run.val ? fixed(run.val->loss, 4) : "-"},
                          {to_string(run.status)}});
  }
  return table;
}

}  // namespace lra::report
