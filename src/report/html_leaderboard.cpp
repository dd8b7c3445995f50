#include "base/text_format.h"
#include "report/html_parts.h"
#include "report/markup.h"
#include "report/task_averages.h"

namespace lra::report {
namespace {

std::string sub(const std::string& content) { return "<span class=\"sub\">" + content + "</span>"; }

// "v0 36.37 +0.05": the paper's figure, and ours minus it. The sign says what the colour says.
std::string paper_html(const char* version, std::optional<double> ours,
                       std::optional<double> paper) {
  if (!paper) return "";
  std::string text = std::string(version) + " " + fixed(*paper, 2);
  if (const auto moved = difference(ours, paper)) {
    const std::string sign = signed_text(moved);
    const char* direction = sign == "+0.00" ? "quiet" : sign[0] == '-' ? "down" : "up";
    text += std::string(" <span class=\"") + direction + "\">" + sign + "</span>";
  }
  return sub(text);
}

// Most figures did not change between the versions: then one line stands for both.
std::string both_papers_html(std::optional<double> ours, std::optional<double> v0,
                             std::optional<double> v1) {
  if (v0 == v1) return paper_html("v0, v1", ours, v0);
  return paper_html("v0", ours, v0) + paper_html("v1", ours, v1);
}

std::string sort_attribute(std::optional<double> value) {
  return " data-sort=\"" + (value ? fixed(*value, 6) : "") + "\"";
}

// Where the figure comes from: "runs 1, 2" of the section Runs.
std::string run_links(const std::vector<size_t>& runs) {
  std::string text = runs.size() == 1 ? "run " : "runs ";
  for (size_t i = 0; i < runs.size(); ++i) {
    text += std::string(i ? ", " : "") + "<a href=\"#" + run_id(runs[i]) + "\">" +
            std::to_string(runs[i] + 1) + "</a>";
  }
  return text;
}

std::string cell_html(const Cell& cell, bool best) {
  const auto ours = cell.full_accuracy();
  std::string text = "<td" + std::string(best ? " class=\"best\"" : "") +
                     sort_attribute(cell.shown_accuracy()) + "><span class=\"figure" +
                     (ours ? "" : " quiet") + "\">" + html(figure_text(cell)) + "</span>";
  std::string spread = spread_text(cell);
  if (cell.accuracy.deviation) spread += ", s " + fixed(*cell.accuracy.deviation, 2);
  if (!spread.empty()) text += sub(html(spread));
  if (!cell.shortfall.empty()) text += sub(html(cell.shortfall));
  text += both_papers_html(cell.compared_accuracy(), cell.paper_v0, cell.paper_v1);
  if (cell.paper_fail) text += sub("v0, v1 FAIL");
  if (!cell.runs.empty()) text += sub(run_links(cell.runs));
  return text + "</td>";
}

std::string average_html(const Average& average) {
  return "<td class=\"avg\"" + sort_attribute(average.ours) + "><span class=\"figure" +
         (average.ours ? "" : " quiet") + "\">" + accuracy_text(average.ours) + "</span>" +
         both_papers_html(average.compared, average.paper_v0, average.paper_v1) + "</td>";
}

std::string row_html(const Leaderboard& board, const Row& row) {
  std::string text = "<tr><th class=\"pin word\" scope=\"row\">" + html(row.title);
  for (const std::string& part : {row.preset + " preset, " + row.checkpoint + " weights",
                                  row.settings, row.division, "validation: " + row.validation}) {
    if (!part.empty()) text += sub(html(part));
  }
  text += "</th>";
  for (size_t i = 0; i < row.cells.size(); ++i) {
    text += cell_html(row.cells[i], rank_of(board, row, ranked_figure(i)) == Emphasis::kBest);
  }
  return text + average_html(row.scored) + average_html(row.present) + "</tr>\n";
}

// A row under those of the models: a figure for each column, then their average.
std::string summary_row_html(const std::string& name, const std::string& what,
                             const std::vector<std::string>& cells, const std::string& scored) {
  std::string text = "<tr><th class=\"pin word\" scope=\"row\">" + html(name) + sub(what) + "</th>";
  for (const std::string& cell : cells) text += "<td>" + cell + "</td>";
  return text + "<td class=\"avg\">" + scored + "</td><td class=\"avg\">-</td></tr>\n";
}

std::string task_average_html(const TaskAverage& row) {
  std::vector<std::string> cells;
  for (const Summary& cell : row.cells) cells.push_back(task_average_text(cell));
  return summary_row_html(row.name, "mean and standard deviation over models", cells,
                          task_average_text(row.scored));
}

std::string baseline_html(const BaselineRow& row) {
  std::vector<std::string> cells;
  for (const auto& accuracy : row.accuracy) cells.push_back(accuracy_text(accuracy));
  return summary_row_html(row.name, "trivial baseline", cells, accuracy_text(row.scored));
}

}  // namespace

std::string column_header(const std::string& title, bool word, const std::string& more_classes) {
  std::string classes = word ? "word" : "";
  if (!more_classes.empty()) classes += (classes.empty() ? "" : " ") + more_classes;
  const std::string attribute = classes.empty() ? "" : " class=\"" + classes + "\"";
  return "<th" + attribute + " scope=\"col\" aria-sort=\"none\"><button type=\"button\">" +
         html(title) + "</button></th>";
}

std::string leaderboard_html(const Leaderboard& board) {
  if (board.rows.empty()) return "";
  std::string text =
      "<div class=\"scroll board\" tabindex=\"0\" role=\"region\" aria-label=\"Leaderboard\">"
      "<table>\n<thead><tr>" +
      column_header("Model", true, "pin");
  for (const TaskColumn& column : board.columns) text += column_header(column.title, false);
  text += column_header("Avg of five", false, "avg") + column_header("Avg of all", false, "avg") +
          "</tr></thead>\n<tbody>\n";
  for (const Row& row : board.rows) text += row_html(board, row);
  text += "</tbody>\n<tfoot>\n";
  for (const TaskAverage& row : task_averages(board)) text += task_average_html(row);
  for (const BaselineRow& row : board.baselines) text += baseline_html(row);
  return text + "</tfoot></table></div>\n";
}

std::string table_html(const Table& table) {
  if (table.rows.empty()) return "";
  return "<h3>" + html(table.title) + "</h3>\n<p class=\"caption\">" + html(table.caption) +
         "</p>\n" + bare_table_html(table);
}

std::string bare_table_html(const Table& table) {
  std::string text = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                     html(table.title) + "\"><table>\n<thead><tr>";
  const auto is_word = [&](size_t column) { return static_cast<int>(column) < table.num_left; };
  for (size_t i = 0; i < table.header.size(); ++i) {
    text += column_header(table.header[i], is_word(i));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const bool is_long = row[i].text.size() > 64;  // wraps; anything shorter stays on one line
      const char* kind = is_word(i) ? (is_long ? "word long" : "word") : (is_long ? "long" : "");
      text += std::string("<td class=\"") + kind + "\">" + html(row[i].text) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace lra::report
