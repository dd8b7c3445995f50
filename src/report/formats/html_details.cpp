// Details that the leaderboard shows below a row on click: each figure with its runs, and the
// settings.
#include "base/text_format.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"

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

// Links to the section Runs: "run 1, run 2".
std::string run_links(const std::vector<size_t>& runs) {
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i) {
    text += filled("{}<a href=\"#{}\">run {}</a>", {i ? ", " : "", run_id(runs[i]), runs[i] + 1});
  }
  return text;
}

std::string task_row_html(const TaskColumn& column, const Cell& cell) {
  const std::string papers[] = {
      cell.paper_fail ? "FAIL" : paper_html(cell.compared_accuracy(), cell.paper_v0),
      cell.paper_fail ? "FAIL" : paper_html(cell.compared_accuracy(), cell.paper_v1)};
  const auto& deviation = cell.accuracy.deviation;
  return filled(
      R"(<tr><td class="word">{}</td><td>{}{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>)"
      R"(<td>{}</td><td>{}</td><td>{}</td><td class="word">{}</td></tr>)"
      "\n",
      {html(column.title), html(figure_text(cell)), marks_html(cell.marks),
       cell.interval ? "±" + fixed(*cell.interval, 2) : "-", accuracy_text(deviation), papers[0],
       papers[1], size_text(cell.num_parameters), time_text(cell.train_seconds),
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
  text += "</tbody></table>\n<dl>\n";
  const std::pair<const char*, const std::string&> facts[] = {{"preset", row.preset},
                                                              {"settings", row.settings},
                                                              {"tested weights", row.checkpoint},
                                                              {"validation", row.validation},
                                                              {"division", row.division},
                                                              {"revision", row.revisions},
                                                              {"machine", row.machines}};
  for (const auto& [name, value] : facts) {
    if (!value.empty()) text += filled("<dt>{}</dt><dd>{}</dd>\n", {name, html(value)});
  }
  return text + "</dl>\n";
}

}  // namespace lra::report
