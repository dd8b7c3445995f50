// The shape that tools around the lm-evaluation-harness read: one model, a task to a key, metrics
// named "metric,filter". Shares, not percent.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "io/json.h"
#include "report/formats/formats.h"
#include "report/formats/markup.h"
#include "report/tables/run_facts.h"

namespace lra::report {
namespace {

Json result_of(const TaskColumn& column, const Cell& cell, const RunRecord& run) {
  Json result = {{"alias", clean(column.title)},
                 {"acc,none", json_number(cell.accuracy.mean / 100)}};
  // Standard error over seeds where there are several, else that of the share itself.
  const double p = cell.accuracy.mean / 100;
  const double n = static_cast<double>(std::max<int64_t>(1, run.test->num_examples));
  const double error = cell.accuracy.deviation
                           ? *cell.accuracy.deviation / 100 / std::sqrt(cell.accuracy.count)
                           : std::sqrt(p * (1 - p) / n);
  result["acc_stderr,none"] = json_number(error);
  for (const MarkMeaning& mark : mark_meanings()) {
    if (cell.has(mark.kind)) result[mark.field] = clean(cell.reason(mark.kind));
  }
  return result;
}

const RunRecord* tested_run(const ReportInput& input, const Cell& cell) {
  const auto found = std::find_if(cell.runs.begin(), cell.runs.end(),
                                  [&](size_t place) { return has_figure(input.records[place]); });
  return found == cell.runs.end() ? nullptr : &input.records[*found];
}

const Row& only_row(const Leaderboard& board) {
  if (board.rows.size() == 1) return board.rows.front();
  throw Error(
      {.where = "--format lm-eval",
       .what = "the records form " + std::to_string(board.rows.size()) + " rows of the leaderboard",
       .expected = "the runs of one model with one setting",
       .advice = "name only the folders of its runs"});
}

}  // namespace

std::string format_lm_eval(const ReportInput& input) {
  const Row& row = only_row(input.board);
  Json json = {{"results", Json::object()},   {"configs", Json::object()},
               {"versions", Json::object()},  {"n-shot", Json::object()},
               {"n-samples", Json::object()}, {"higher_is_better", Json::object()}};
  for (size_t i = 0; i < row.cells.size(); ++i) {
    const RunRecord* run = tested_run(input, row.cells[i]);
    if (!run) continue;
    const TaskColumn& column = input.board.columns[i];
    const std::string task = "lra_" + clean(column.task);
    json["results"][task] = result_of(column, row.cells[i], *run);
    json["configs"][task] = {{"task", task},
                             {"output_type", "classification"},
                             {"test_split", "test"},
                             {"metadata",
                              {{"version", column.version},
                               {"validation", clean(run->validation)},
                               {"checkpoint", clean(run->checkpoint)},
                               {"division", clean(run->division)},
                               {"data_hash", clean(run->data_hash)}}}};
    json["versions"][task] = column.version;
    json["n-shot"][task] = 0;
    json["n-samples"][task] = {{"original", run->test_split_examples},
                               {"effective", run->test->num_examples}};
    json["higher_is_better"][task] = {{"acc", true}};
    json["date"] = clean(run->provenance.finished_utc);
  }
  json["model_name"] = clean(row.title);
  json["model_source"] = "lra";
  json["config"] = {{"model", clean(row.model)},
                    {"preset", clean(row.preset)},
                    {"settings", clean(row.settings)}};
  json["git_hash"] = clean(row.revisions);
  json["machine"] = clean(row.machines);
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace lra::report
