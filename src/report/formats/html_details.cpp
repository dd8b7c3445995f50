// Details that the leaderboard shows below a row on click: each figure with its runs, and the
// settings. Then the section of all runs, to which these link.
#include <algorithm>

#include "base/text_format.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"
#include "report/tables/settings.h"

namespace lra::report {
namespace {

// "36.37 (+0.05)": the paper's figure, and ours minus it. The sign repeats what the color shows.
std::string paper_html(std::optional<double> ours, std::optional<double> paper) {
  std::string text = accuracy_text(paper);
  if (const auto moved = difference(ours, paper)) {
    const std::string sign = signed_text(moved);
    const char* direction = sign == "+0.00" ? "quiet" : sign[0] == '-' ? "down" : "up";
    text += std::string(" <span class=\"") + direction + "\">(" + sign + ")</span>";
  }
  return text;
}

// The id of the record at that place, from 0: "run-1" for the first, which is shown as "Run 1".
std::string run_id(size_t index) { return "run-" + std::to_string(index + 1); }

// Links to the section Runs: "run 1, run 2".
std::string run_links(const std::vector<size_t>& runs) {
  return joined(mapped(runs, [](size_t run) {
    return filled("<a href=\"#{}\">run {}</a>", {run_id(run), run + 1});
  }));
}

std::string task_row_html(const TaskColumn& column, const Cell& cell) {
  const auto paper = [&](std::optional<double> accuracy) {
    return cell.paper_fail ? "FAIL" : paper_html(cell.compared_accuracy(), accuracy);
  };
  return filled(
      R"(<tr><td class="word">{}</td><td>{}{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>)"
      R"(<td>{}</td><td>{}</td><td>{}</td><td class="word">{}</td></tr>)"
      "\n",
      {html(column.title), html(figure_text(cell)), marks_html(cell.marks),
       or_dash(interval_text(cell)), accuracy_text(cell.accuracy.deviation), paper(cell.paper_v0),
       paper(cell.paper_v1), size_text(cell.num_parameters), time_text(cell.train_seconds),
       run_links(cell.runs),
       html(joined({seeds_text(cell), lost_text(cell), texts_of(cell.marks)}, "; "))});
}

std::string average_row_html(const char* name, const Average& average) {
  if (!average.ours) return "";
  return filled(
      R"(<tr><td class="word">{}</td><td>{}</td><td>-</td><td>-</td><td>{}</td><td>{}</td>)"
      "<td></td><td></td><td></td><td></td></tr>\n",
      {name, accuracy_text(average.ours), paper_html(average.compared, average.paper_v0),
       paper_html(average.compared, average.paper_v1)});
}

std::string facts_html(const std::vector<Fact>& facts) {
  return concatenated(facts, [](const Fact& fact) {
    return filled("<dt>{}</dt><dd>{}</dd>\n", {html(fact.name), html(fact.value)});
  });
}

// The settings, or how they differ from those of the first run of this model and task.
std::string settings_html(const std::vector<RunRecord>& records, size_t index) {
  const RunRecord& run = records[index];
  const auto first = std::ranges::find_if(records, [&](const RunRecord& other) {
    return other.model == run.model && other.task == run.task && other.kind == run.kind;
  });
  const auto place = static_cast<size_t>(first - records.begin());
  std::string text = "<pre tabindex=\"0\">";
  if (place == index) {
    for (const std::string& line : toml_lines(run)) text += html(line) + "\n";
    return text + "</pre>\n";
  }
  const SettingLines base = setting_lines(first->config);
  for (const std::string& line : setting_lines(run.config)) {
    if (!base.contains(line)) text += html(line) + "\n";
  }
  return "<p>Settings: those of <a href=\"#" + run_id(place) + "\">run " +
         std::to_string(place + 1) + "</a>, but for these and the seed.</p>\n" + text + "</pre>\n";
}

std::string run_html(const std::vector<RunRecord>& records, size_t index) {
  const RunRecord& run = records[index];
  const bool is_bench = run.kind == "bench";
  const bool bad = run.status == RunStatus::kFailed || run.status == RunStatus::kDiverged;
  return filled(
      "<details id=\"{}\"><summary>Run {}: <b>{}</b> on {}{}{} <span class=\"status{}\">{}</span>"
      "</summary>\n<dl>\n{}{}</dl>\n{}</details>\n",
      {run_id(index), index + 1, html(run.model_title), html(run.task_title),
       is_bench ? ", measurement" : html(", " + run.preset + ", seed " + std::to_string(run.seed)),
       run.test ? ", " + fixed(100 * run.test->accuracy, 2) + " %" : "", bad ? " bad" : "",
       html(to_string(run.status)), is_bench ? "" : facts_html(result_facts(run)),
       facts_html(provenance_facts(run)), settings_html(records, index)});
}

}  // namespace

std::string row_details_html(const Leaderboard& board, const Row& row) {
  std::string text =
      "<table>\n<thead><tr><th class=\"word\">Task</th><th>Accuracy, %</th><th>95 % interval</th>"
      "<th>Std. dev. over seeds</th><th>Paper v0</th><th>Paper "
      "v1</th><th>Parameters</th><th>Training time</th><th>Runs</th>"
      "<th class=\"word\">Remarks</th></tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < row.cells.size(); ++i) {
    const Cell& cell = row.cells[i];
    if (cell.was_run()) text += task_row_html(board.columns[i], cell);
  }
  text += average_row_html("Average of 5", row.scored);
  if (board.columns.size() != kNumScoredTasks) {
    text += average_row_html("Average of all", row.present);
  }
  std::vector<Fact> facts = {{"preset", row.preset},
                             {"settings", row.settings},
                             {"tested weights", row.checkpoint},
                             {"validation", row.validation},
                             {"division", row.division},
                             {"revision", row.revisions},
                             {"machine", row.machines}};
  std::erase_if(facts, [](const Fact& fact) { return fact.value.empty(); });
  return text + "</tbody></table>\n<dl>\n" + facts_html(facts) + "</dl>\n";
}

std::string runs_html(const std::vector<RunRecord>& records) {
  std::string text = "<div class=\"runs\">\n";
  for (size_t i = 0; i < records.size(); ++i) text += run_html(records, i);
  return text + "</div>\n";
}

}  // namespace lra::report
