// The whole report for programs: the numbers of the leaderboard unrounded, then the records.
#include "report/formats/formats.h"
#include "report/formats/markup.h"
#include "report/tables/claims.h"
#include "report/tables/comparisons.h"
#include "report/tables/trade_off.h"

namespace lra::report {
namespace {

Json optional_number(std::optional<double> value) {
  return value ? json_number(*value) : Json(nullptr);
}
Json optional_count(std::optional<int64_t> value) { return value ? Json(*value) : Json(nullptr); }

// `function` of the figures, by the task of their columns.
template <typename Figures, typename Function>
Json by_task(const Leaderboard& board, const Figures& figures, const Function& function) {
  Json json;
  for (size_t i = 0; i < board.columns.size(); ++i) {
    json[board.columns[i].task] = function(figures[i]);
  }
  return json;
}

Json row_json(const Leaderboard& board, const Row& row) {
  Json json = {
      {"model", row.model},       {"title", row.title},           {"preset", row.preset},
      {"settings", row.settings}, {"checkpoint", row.checkpoint}, {"validation", row.validation},
      {"division", row.division}, {"revisions", row.revisions},   {"machines", row.machines}};
  json["average_of_five"] = average_json(row.scored);
  json["average_of_all"] = average_json(row.present);
  json["cells"] = Json::array();
  for (size_t i = 0; i < row.cells.size(); ++i) {
    json["cells"].push_back(cell_json(board.columns[i], row.cells[i]));
  }
  return json;
}

Json baseline_json(const Leaderboard& board, const BaselineRow& row) {
  return {{"name", row.name},
          {"average_of_five", optional_number(row.scored)},
          {"percent", by_task(board, row.accuracy, optional_number)}};
}

Json spread_json(const Summary& summary) {
  return {{"models", summary.count},
          {"mean", summary.count ? Json(json_number(summary.mean)) : Json(nullptr)},
          {"std", optional_number(summary.deviation)}};
}

Json task_average_json(const Leaderboard& board, const TaskAverage& row) {
  return {{"name", row.name},
          {"average_of_five", spread_json(row.scored)},
          {"percent", by_task(board, row.cells, spread_json)}};
}

Json judgement_json(const Judgement& judgement) {
  return {{"verdict", verdict_text(judgement.verdict)}, {"finding", judgement.finding}};
}

Json claim_json(const JudgedClaim& judged) {
  return {{"place", judged.claim->place},
          {"claim", judged.claim->statement},
          {"ours", judgement_json(judged.ours)},
          {"small_scale", judgement_json(judged.small)},
          {"paper_tables", judgement_json(judged.paper)}};
}

Json comparison_json(const PairedTest& test) {
  return {{"task", test.board->columns[test.column].task},
          {"model", test.first->model},
          {"compared_with", test.second->model},
          {"settings", test.first->cells[test.column].settings},
          {"compared_settings", test.second->cells[test.column].settings},
          {"seeds", test.num_seeds},
          {"difference", json_number(test.difference)},
          {"half_width95", optional_number(test.interval)},
          {"p_over_seeds", optional_number(test.p_over_seeds)},
          {"p_over_examples", optional_number(test.p_over_examples)},
          {"only_first", test.only_first},
          {"only_second", test.only_second},
          {"p_adjusted", optional_number(test.p_adjusted)},
          {"verdict", test.verdict()}};
}

Json trade_off_json(const TradeOff& trade_off) {
  Json points = mapped(trade_off.points, [](const TradeOffPoint& point) {
    return Json{{"model", point.title},
                {"quality", json_number(point.quality)},
                {"relative_speed", json_number(point.speed)},
                {"memory_gb", optional_number(point.memory_gb)},
                {"examples_per_s", optional_number(point.examples_per_s)},
                {"on_speed_front", point.on_speed_front},
                {"on_memory_front", point.on_memory_front}};
  });
  return {{"quality", trade_off.quality_name}, {"points", points}};
}

// The same document with clean() applied to every text, keys included.
Json cleaned(const Json& json) {
  if (json.is_string()) return clean(json.get<std::string>());
  if (json.is_array()) return mapped(json, cleaned);
  if (!json.is_object()) return json;
  Json out = Json::object();
  for (const auto& [key, value] : json.items()) out[clean(key)] = cleaned(value);
  return out;
}

}  // namespace

Json cell_json(const TaskColumn& column, const Cell& cell) {
  Json json = average_json({.ours = cell.shown_accuracy(),
                            .paper_v0 = cell.paper_v0,
                            .paper_v1 = cell.paper_v1,
                            .compared = cell.compared_accuracy()});
  json["task"] = column.task;
  json["task_version"] = column.version;
  json["settings"] = cell.settings;
  json["was_run"] = cell.was_run();
  json["seeds"] = cell.accuracy.count;
  json["deviation"] = optional_number(cell.accuracy.deviation);
  json["half_width95_over_seeds"] = optional_number(cell.accuracy.half_width95);
  json["half_width95"] = optional_number(cell.interval);
  json["fail"] = cell.fail;
  for (const MarkMeaning& mark : mark_meanings()) json[mark.field] = cell.reason(mark.kind);
  json["task_changes"] = cell.task_changes;
  json["paper_fail"] = cell.paper_fail;
  json["diverged"] = cell.num_diverged;
  json["failed"] = cell.num_failed;
  json["unfinished"] = cell.num_unfinished;
  json["validation"] = cell.validation;
  json["division"] = cell.division;
  json["parameters"] = optional_count(cell.num_parameters);
  json["train_seconds"] = optional_number(cell.train_seconds);
  json["tokens_per_s"] = optional_number(cell.speed.tokens_per_s);
  json["steps_per_s"] = optional_number(cell.speed.steps_per_s);
  json["relative_speed"] = optional_number(cell.speed.relative);
  json["peak_memory_bytes"] = optional_count(cell.speed.peak_memory_bytes);
  return json;
}

Json average_json(const Average& average) {
  return {{"percent", optional_number(average.ours)},
          {"paper_v0", optional_number(average.paper_v0)},
          {"paper_v1", optional_number(average.paper_v1)},
          {"minus_paper_v0", optional_number(difference(average.compared, average.paper_v0))},
          {"minus_paper_v1", optional_number(difference(average.compared, average.paper_v1))}};
}

Json speed_json(const SpeedRow& row) {
  const Measurement& m = row.measured;
  return {{"task", row.task},
          {"model", row.model},
          {"preset", row.preset},
          {"settings", row.settings},
          {"mode", m.mode},
          {"dtype", m.dtype},
          {"length", m.length},
          {"batch", m.batch},
          {"steps_per_s", json_number(m.steps_per_s)},
          {"slowest_steps_per_s", json_number(m.slowest_steps_per_s)},
          {"fastest_steps_per_s", json_number(m.fastest_steps_per_s)},
          {"tokens_per_s", json_number(m.tokens_per_s)},
          {"windows", m.windows},
          {"parts", m.parts.value_or(1)},
          {"pipeline_steps_per_s", optional_number(m.pipeline_steps_per_s)},
          {"flops_utilisation", json_number(flops_utilisation(m))},
          {"warning", m.warning.value_or("")},
          {"peak_resident_bytes", m.peak_resident_bytes},
          {"relative_speed", optional_number(row.relative)},
          {"paper_relative_speed", optional_number(row.paper_relative)},
          {"machine", row.machine},
          {"revision", row.revision}};
}

std::string format_json(const ReportInput& input) {
  const Leaderboard& board = input.board;
  Json json = {{"schema", 1}, {"title", input.options.title}, {"num_runs", board.num_runs}};
  json["tasks"] = mapped(board.columns, [](const TaskColumn& column) {
    return Json{{"task", column.task}, {"title", column.title}, {"version", column.version}};
  });
  json["rows"] = mapped(board.rows, [&](const Row& row) { return row_json(board, row); });
  json["baselines"] =
      mapped(board.baselines, [&](const BaselineRow& row) { return baseline_json(board, row); });
  json["task_averages"] = mapped(
      task_averages(board), [&](const TaskAverage& row) { return task_average_json(board, row); });
  json["measurements"] = mapped(board.speeds, speed_json);
  json["comparisons"] = mapped(compare_models(input), comparison_json);
  json["claims"] = mapped(judge_claims(input), claim_json);
  json["figure3"] = {{"ours", trade_off_json(our_trade_off(input))},
                     {"paper", trade_off_json(paper_trade_off())}};
  json["analyses"] = mapped(input.options.analyses, [](const Analysis& analysis) {
    return parse_json(to_json(analysis.record), "analysis");
  });
  json["warnings"] = board.warnings;
  json["left_out"] = input.options.problems;
  json["notes"] = mapped(paper_notes(), [](std::string_view note) { return std::string(note); });
  json["records"] = mapped(
      input.records, [](const RunRecord& record) { return parse_json(to_json(record), "record"); });
  return cleaned(json).dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace lra::report
