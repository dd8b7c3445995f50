// The leaderboard: a table whose groups of rows are our full runs, trivial baselines and short
// runs. It works without scripts: a <details> in the row or in the heading of a group opens its
// content, through selectors of the style sheet (:has).
#include <algorithm>
#include <iterator>
#include <set>
#include <span>

#include "base/text_format.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

struct Layout {
  bool has_five = false;  // some row or baseline has the paper's average
  // Second average: over all tasks that have runs; empty for one task and for the five of the
  // first.
  std::string all_title;
  size_t num_tasks = 0;
  bool has_family = false;
  bool has_seeds = false;  // some figure is of several seeds
  std::set<std::string, std::less<>>
      varying;  // what differs between rows: "preset", "weights", ...
};

constexpr std::string_view kDivision = "division";
constexpr const char* kBestFirst =  // sort_rows() in leaderboard.cpp
    "Best first: by the average; without one, by the points above the best trivial baseline, "
    "summed over the tasks.";

struct Facet {
  std::string_view name;
  std::string (*text)(const Row& row);
};

constexpr Facet kFacets[] = {
    {"preset", [](const Row& row) { return row.preset + " preset"; }},
    {"weights", [](const Row& row) { return row.checkpoint + " weights"; }},
    {"validation", [](const Row& row) { return "validation: " + row.validation; }},
    {kDivision, [](const Row& row) { return row.division; }},
};

Layout layout_of(const ReportInput& input) {
  const Leaderboard& board = input.board;
  Layout layout;
  const bool are_the_five = std::ranges::all_of(board.columns, &TaskColumn::is_scored) &&
                            board.columns.size() == kNumScoredTasks;
  bool has_all = false;
  for (const Row& row : board.rows) {
    layout.has_five |= row.scored.ours.has_value();
    has_all |= row.present.ours.has_value();
  }
  layout.num_tasks = board.columns.size();
  if (has_all && layout.num_tasks > 1 && !are_the_five) {
    layout.all_title = "Avg of " + std::to_string(layout.num_tasks);
  }
  layout.has_family = !input.options.literature.families.empty();
  layout.has_seeds = any_cell(board, [](const Cell& cell) { return cell.accuracy.count > 1; });
  for (const Facet& facet : kFacets) {
    std::set<std::string> values;
    for (const Row& row : board.rows) values.insert(facet.text(row));
    if (values.size() > 1) layout.varying.emplace(facet.name);
  }
  return layout;
}

// True if the row has figures, all of them of less than full runs.
bool is_short_row(const Row& row) {
  const auto is_short = [](const Cell& cell) { return !cell.shortfall.empty(); };
  const auto is_full = [](const Cell& cell) {
    return cell.shown_accuracy() && cell.shortfall.empty();
  };
  return std::ranges::any_of(row.cells, is_short) && std::ranges::none_of(row.cells, is_full);
}

// A second line of a cell; nothing for an empty one.
std::string sub(const std::string& content) {
  return content.empty() ? "" : "<span class=\"sub\">" + content + "</span>";
}

std::string sort_attribute(std::optional<double> value) {
  return " data-sort=\"" + (value ? fixed(*value, 6) : "") + "\"";
}

const char* rank_class(Emphasis rank) {
  return rank == Emphasis::kBest     ? " class=\"best\""
         : rank == Emphasis::kSecond ? " class=\"second\""
                                     : "";
}

// "1.5 h", "3.1 min GPU"
std::string duration_text(const Cell& cell) {
  if (!cell.train_seconds) return "";
  return time_text(cell.train_seconds) + (cell.on_gpu ? " GPU" : "");
}

std::string figure_html(Emphasis rank, std::optional<double> value, bool is_quiet,
                        const std::string& text, const std::string& more) {
  return filled(R"(<td{}{}><span class="figure{}">{}</span>{}</td>)",
                {rank_class(rank), sort_attribute(value), is_quiet ? " quiet" : "", text, more});
}

std::string task_cell_html(const Leaderboard& board, const Row& row, size_t column) {
  const Cell& cell = row.cells[column];
  if (!cell.was_run()) return "<td class=\"quiet\" data-sort=\"\">-</td>";
  const bool is_quiet = !cell.shown_accuracy() || cell.has(MarkKind::kTrivial);
  return figure_html(rank_in_column(board, row, column), cell.shown_accuracy(), is_quiet,
                     html(figure_text(cell)),
                     sub(interval_text(cell)) + sub(duration_text(cell)) + marks_html(cell.marks));
}

std::string average_html(const Leaderboard& board, const Row& row, Average Row::*average) {
  const auto ours = (row.*average).ours;
  return figure_html(rank_of_average(board, row, average), ours, !ours, accuracy_text(ours), "");
}

// Columns after the tasks. Seeds are last: they are left out where every figure is of one.
constexpr const char* kCosts[] = {"Parameters", "Peak memory", "Seeds"};

std::span<const char* const> costs_of(const Layout& layout) {
  return std::span(kCosts).first(std::size(kCosts) - !layout.has_seeds);
}

int64_t cost_of(const Cell& cell, size_t cost) {  // 0: unknown
  if (cost == 0) return cell.num_parameters.value_or(0);
  return cost == 1 ? cell.speed.peak_memory_bytes.value_or(0) : cell.accuracy.count;
}

std::string cost_text(int64_t value, size_t cost) {
  if (cost == 0) return size_text(value);
  return cost == 1 ? memory_text(value) : std::to_string(value);
}

// "3", or "1" above "to 3" where tasks differ.
std::string cost_html(const Row& row, size_t cost) {
  int64_t least = INT64_MAX, most = 0;
  for (const Cell& cell : row.cells) {
    most = std::max(most, cost_of(cell, cost));
    if (cost_of(cell, cost) > 0) least = std::min(least, cost_of(cell, cost));
  }
  if (most == 0) return "<td class=\"aside\" data-sort=\"\">-</td>";
  std::string text = cost_text(least, cost);
  if (cost_text(most, cost) != text) text += sub("to " + cost_text(most, cost));
  return filled("<td class=\"aside\"{}>{}</td>", {sort_attribute(static_cast<double>(most)), text});
}

size_t num_columns(const Layout& layout) {
  return 1 + costs_of(layout).size() + layout.num_tasks + layout.has_family + layout.has_five +
         !layout.all_title.empty() + layout.varying.contains("division");
}

// Columns that a narrow screen leaves out.
std::string word_html(const std::string& text) {
  return "<td class=\"word aside\">" + html(or_dash(text)) + "</td>";
}

// The row's differences from others; the division has a column.
std::string differences_html(const Layout& layout, const Row& row) {
  std::vector<std::string> texts;
  for (const Facet& facet : kFacets) {
    if (facet.name != kDivision && layout.varying.contains(facet.name)) {
      texts.push_back(facet.text(row));
    }
  }
  texts.push_back(row.settings);
  return sub(html(joined(texts)));
}

std::string entry_html(const ReportInput& input, const Layout& layout, const Row& row,
                       const char* group) {
  std::string text = filled(R"(<tbody class="entry {}"><tr><th class="pin word" scope="row">)"
                            "<details><summary>{}</summary></details>{}</th>",
                            {group, html(row.title), differences_html(layout, row)});
  if (layout.has_family) text += word_html(family_of(input.options.literature, row.model));
  for (size_t i = 0; i < row.cells.size(); ++i) text += task_cell_html(input.board, row, i);
  if (layout.has_five) text += average_html(input.board, row, &Row::scored);
  if (!layout.all_title.empty()) text += average_html(input.board, row, &Row::present);
  for (size_t cost = 0; cost < costs_of(layout).size(); ++cost) text += cost_html(row, cost);
  if (layout.varying.contains(kDivision)) text += word_html(row.division);
  return text + filled("</tr><tr class=\"more\"><td colspan=\"{}\">\n{}</td></tr></tbody>\n",
                       {num_columns(layout), row_details_html(input.board, row)});
}

// A row that is not ranked and has nothing to open.
std::string baseline_html(const char* classes, const Layout& layout, const BaselineRow& row) {
  std::string text = filled(R"(<tbody class="{}"><tr><th class="pin word" scope="row">{}</th>)",
                            {classes, html(row.name)});
  if (layout.has_family) text += word_html("trivial");
  for (const auto& accuracy : row.accuracy) text += "<td>" + accuracy_text(accuracy) + "</td>";
  if (layout.has_five) text += "<td>" + accuracy_text(row.scored) + "</td>";
  if (!layout.all_title.empty()) text += "<td>-</td>";
  for (size_t i = 0; i < costs_of(layout).size(); ++i) text += "<td class=\"aside\"></td>";
  return text + (layout.varying.contains(kDivision) ? word_html("") : "") + "</tr></tbody>\n";
}

// The heading of a group of rows, which opens and closes it.
std::string group_html(const Layout& layout, const char* group, size_t count,
                       const std::string& title) {
  return filled(R"(<tbody class="group {}"><tr><th class="word" scope="colgroup" colspan="{}">)"
                "<details><summary><b>{}</b> {}</summary></details></th></tr></tbody>\n",
                {group, num_columns(layout), count, title});
}

// The best of each column in one row, and all of them to open.
std::string baselines_html(const Leaderboard& board, const Layout& layout) {
  if (board.baselines.empty()) return "";
  return baseline_html("plain", layout, best_of_baselines(board, "Best trivial baseline")) +
         group_html(layout, "trivial", board.baselines.size(), "trivial baselines") +
         concatenated(board.baselines, [&](const BaselineRow& row) {
           return baseline_html("plain trivial", layout, row);
         });
}

std::string header_html(const Leaderboard& board, const Layout& layout) {
  std::string text = "<thead><tr>" + column_header("Model", "word pin");
  if (layout.has_family) text += column_header("Family", "word aside");
  for (const TaskColumn& column : board.columns) text += column_header(column.title, "");
  if (layout.has_five) text += column_header("Avg of 5", "");
  if (!layout.all_title.empty()) text += column_header(layout.all_title, "");
  for (const char* title : costs_of(layout)) text += column_header(title, "aside");
  if (layout.varying.contains(kDivision)) text += column_header("Division", "word aside");
  return text + "</tr></thead>\n";
}

// The tasks behind each average.
std::string averages_text(const Leaderboard& board, const Layout& layout) {
  std::string text = layout.has_five ? " Avg of 5: the paper's, without Path-X." : "";
  if (layout.all_title.empty()) return text;
  const std::string tasks = joined(mapped(board.columns, &TaskColumn::title));
  return text + " " + layout.all_title + ": " + tasks + ".";
}

// Properties that all rows share, said once.
std::string shared_text(const Leaderboard& board, const Layout& layout) {
  std::vector<std::string> texts;
  for (const Facet& facet : kFacets) {
    if (!layout.varying.contains(facet.name)) texts.push_back(facet.text(board.rows.front()));
  }
  if (!has_published(board)) texts.emplace_back("settings or data that nobody published");
  if (!layout.has_seeds) texts.emplace_back("one seed");
  return " All rows: " + joined(texts, "; ") + ".";
}

}  // namespace

std::string leaderboard_html(const ReportInput& input) {
  const Leaderboard& board = input.board;
  if (board.rows.empty()) return "";
  const Layout layout = layout_of(input);
  std::string full, shortened;
  for (const Row& row : board.rows) {
    const bool is_short = is_short_row(row);
    (is_short ? shortened : full) += entry_html(input, layout, row, is_short ? "short" : "full");
  }
  if (full.empty()) full.swap(shortened);
  std::string text =
      "<p class=\"caption\">Test accuracy in percent, ± its 95 % interval, and the time of the "
      "training steps. " +
      html(joined({kBestFirst, "★ best of equal settings and budget, underlined: second.",
                   marks_legend(board, false)},
                  " ") +
           averages_text(board, layout) + shared_text(board, layout)) +
      " Select a model for its runs, settings and the paper's figures."
      "</p>\n"
      "<div class=\"scroll board\" tabindex=\"0\" role=\"region\" aria-label=\"Leaderboard\">"
      "<table>\n" +
      header_html(board, layout) + full + baselines_html(board, layout);
  if (!shortened.empty()) {
    const auto count = static_cast<size_t>(std::ranges::count_if(board.rows, is_short_row));
    text += group_html(layout, "short", count,
                       std::string(count == 1 ? "row" : "rows") +
                           " of shorter runs, ranked among those of equal steps") +
            shortened;
  }
  return text + "</table></div>\n";
}

}  // namespace lra::report
