#include "report/tables/tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text_format.h"

namespace lra::report {
namespace {

// "36.37 (+0.05)": the paper's figure and ours minus it.
std::string against_paper(std::optional<double> ours, std::optional<double> paper) {
  const auto moved = difference(ours, paper);
  return accuracy_text(paper) + (moved ? " (" + signed_text(moved) + ")" : "");
}

Cells paper_line(const Row& row, PaperVersion version) {
  const bool first = version == PaperVersion::kV0;
  std::vector<std::string> texts = {first ? "  paper v0" : "  paper v1"};
  for (const Cell& cell : row.cells) {
    const auto paper = first ? cell.paper_v0 : cell.paper_v1;
    texts.push_back(cell.paper_fail ? "FAIL" : against_paper(cell.compared_accuracy(), paper));
  }
  for (const Average& average : {row.scored, row.present}) {
    texts.push_back(against_paper(average.compared, first ? average.paper_v0 : average.paper_v1));
  }
  return quiet_cells(texts);
}

// True if the paper has a figure for one of the row's runs.
bool has_paper_line(const Row& row) {
  return std::ranges::any_of(row.cells, [](const Cell& cell) {
    return cell.was_run() && (cell.paper_v0 || cell.paper_fail);
  });
}

// A line under those of the models.
template <typename Figure, typename Text>
Cells summary_line(const std::string& name, const std::vector<Figure>& figures,
                   const Figure& scored, const Text& text_of) {
  std::vector<std::string> texts = mapped(figures, text_of);
  texts.insert(texts.begin(), name);
  texts.insert(texts.end(), {text_of(scored), "-"});
  return quiet_cells(texts);
}

void erase_column(Table& table, size_t column) {
  const auto place = static_cast<int>(column);
  if (place >= static_cast<int>(table.header.size()) - table.num_right) {
    --table.num_right;
  } else if (place < table.num_left) {
    --table.num_left;
  }
  table.header.erase(table.header.begin() + place);
  for (Cells& row : table.rows) row.erase(row.begin() + place);
}

// Rank by `figure` among the rows that compare, of which there must be another.
template <typename Figure, typename Compares>
Emphasis rank_of(const Leaderboard& board, const Row& row, const Figure& figure,
                 const Compares& compares) {
  const std::optional<double> own = figure(row);
  if (!own) return Emphasis::kPlain;
  int others = 0, above = 0;
  for (const Row& other : board.rows) {
    const std::optional<double> its = figure(other);
    if (&other == &row || !its || other.is_self_pretrained != row.is_self_pretrained ||
        !compares(other)) {
      continue;
    }
    ++others;
    above += *its > *own;
  }
  if (others == 0) return Emphasis::kPlain;
  return above == 0 ? Emphasis::kBest : above == 1 ? Emphasis::kSecond : Emphasis::kPlain;
}

}  // namespace

Cells quiet_cells(const std::vector<std::string>& texts) {
  return mapped(texts, [](const std::string& text) { return TableCell{text, Emphasis::kQuiet}; });
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

Table accuracy_table(const Leaderboard& board) {
  const bool has_paper = std::ranges::any_of(board.rows, has_paper_line);
  Table table{.title = "Test accuracy, percent",
              .caption =
                  "In brackets the number of seeds n and the half-width of the 95 % interval, over "
                  "seeds or over test examples, whichever is wider. Avg 5 is the paper's average: "
                  "ListOps, Text, Retrieval, Image and Pathfinder. Avg all is over every task "
                  "shown. Both need all their parts."};
  if (has_paper) {
    table.caption += " Under each row the paper's figures, and in parentheses ours minus theirs.";
  }
  std::vector<std::string> marks;
  for (const Row& row : board.rows) {
    marks.resize(table.rows.size());
    marks.push_back(marks_text(board, row));
    TitledCells cells = figures_line(board, row);
    for (const auto& [title, average] :
         {std::pair{"Avg 5", &Row::scored}, {"Avg all", &Row::present}}) {
      cells.push_back(
          {title, {accuracy_text((row.*average).ours), rank_of_average(board, row, average)}});
    }
    table.add(cells);
    if (!has_paper_line(row)) continue;
    table.rows.push_back(paper_line(row, PaperVersion::kV0));
    table.rows.push_back(paper_line(row, PaperVersion::kV1));
  }
  if (board.rows.empty()) return table;
  const std::vector<TaskAverage> averages = task_averages(board);
  for (const TaskAverage& average : averages) {
    table.rows.push_back(
        summary_line(average.name, average.cells, average.scored, task_average_text));
  }
  if (!averages.empty()) {
    table.caption +=
        " Task Avg (Std): mean and sample standard deviation over the n models with full runs of a "
        "preset.";
  }
  for (const BaselineRow& baseline : board.baselines) {
    table.rows.push_back(summary_line("trivial: " + baseline.name, baseline.accuracy,
                                      baseline.scored, accuracy_text));
  }
  table.caption = joined({table.caption, marks_legend(board)}, " ");
  add_marks(table, std::move(marks));
  return table;
}

void add_marks(Table& table, std::vector<std::string> texts) {
  texts.resize(table.rows.size());
  if (std::ranges::all_of(texts, &std::string::empty)) return;
  table.header.emplace_back("Marks");
  ++table.num_right;
  for (size_t i = 0; i < texts.size(); ++i) {
    table.rows[i].push_back({std::move(texts[i]), Emphasis::kQuiet});
  }
}

void fold_columns(Table& table, std::initializer_list<const char*> titles) {
  if (table.rows.empty()) return;
  for (const std::string title : titles) {
    const auto column =
        static_cast<size_t>(std::ranges::find(table.header, title) - table.header.begin());
    const std::string text = table.rows.front()[column].text;
    const auto is_same = [&](const Cells& row) { return row[column].text == text; };
    if (!std::ranges::all_of(table.rows, is_same)) continue;
    if (text != "-") table.caption += " " + title + ": " + text + ".";
    erase_column(table, column);
  }
}

void drop_empty_columns(Table& table) {
  for (size_t i = table.header.size(); i-- > static_cast<size_t>(table.num_keys);) {
    const auto is_empty = [&](const Cells& row) {
      return row[i].text.empty() || row[i].text == "-";
    };
    if (!table.rows.empty() && std::ranges::all_of(table.rows, is_empty)) erase_column(table, i);
  }
}

TitledCells figures_line(const Leaderboard& board, const Row& row) {
  TitledCells cells = {{"Model", {row_label(board, row)}}};
  for (size_t i = 0; i < row.cells.size(); ++i) {
    const std::string spread = spread_text(row.cells[i]);
    const std::string text =
        figure_text(row.cells[i]) + (spread.empty() ? "" : " [" + spread + "]");
    cells.push_back(
        {board.columns[i].title, {text, rank_in_column(board, row, i), row.cells[i].marks}});
  }
  return cells;
}

std::string marks_legend(const Leaderboard& board, bool with_signs) {
  std::vector<std::string> sentences;
  for (const auto& [kind, sign, word, meaning, field] : mark_meanings()) {
    if (!any_cell(board, [kind = kind](const Cell& cell) { return cell.has(kind); })) continue;
    sentences.push_back((with_signs ? sign + " " : "") + word + ": " + meaning + ".");
  }
  for (size_t i = 0; i < board.columns.size(); ++i) {
    std::set<std::string> changes;
    for (const Row& row : board.rows) {
      if (row.cells[i].was_run()) changes.insert(row.cells[i].task_changes);
    }
    const char* of_some = changes.size() > 1 ? ", some rows" : "";
    changes.erase("");
    for (const std::string& change : changes) {
      sentences.push_back(board.columns[i].title + " with changed settings (in parentheses the " +
                          "paper's" + of_some + "): " + change + ".");
    }
  }
  return joined(sentences, " ");
}

std::string marks_text(const Leaderboard& board, const Row& row) {
  const auto num_runs = std::ranges::count_if(row.cells, &Cell::was_run);
  std::map<std::string, std::vector<std::string>> tasks;  // by mark and reason
  for (size_t i = 0; i < row.cells.size(); ++i) {
    for (const Mark& mark : row.cells[i].marks) {
      tasks[meaning_of(mark).sign + " " + mark.reason].push_back(board.columns[i].title);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [reason, titles] : tasks) {
    texts.push_back(num_runs > 1 ? reason + " (" + joined(titles) + ")" : reason);
  }
  return joined(texts, "; ");
}

std::string row_label(const Leaderboard& board, const Row& row) {
  return row_label(board, row, row.settings);
}

std::string row_label(const Leaderboard& board, const Row& row, const std::string& settings) {
  if (std::ranges::count(board.rows, row.title, &Row::title) < 2) return row.title;
  const std::string apart = joined({row.preset, row.checkpoint, settings});
  return apart.empty() ? row.title : row.title + " (" + apart + ")";
}

std::string figure_text(const Cell& cell) {
  if (cell.fail) return "FAIL (" + fixed(cell.accuracy.mean, 2) + ")";
  if (cell.accuracy.count) return fixed(cell.accuracy.mean, 2);
  if (cell.num_diverged) return "diverged";
  if (cell.num_failed) return "failed";
  return cell.num_unfinished ? "unfinished" : "not run";
}

std::string spread_text(const Cell& cell) {
  return joined({seeds_text(cell), interval_text(cell), lost_text(cell)});
}

std::string interval_text(const Cell& cell) {
  return cell.interval ? "±" + fixed(*cell.interval, 2) : "";
}

std::string seeds_text(const Cell& cell) {
  return cell.accuracy.count > 1 ? "n=" + std::to_string(cell.accuracy.count) : "";
}

std::string lost_text(const Cell& cell) {
  const auto part = [](int count, const char* how) {
    return count > 0 ? std::to_string(count) + how : "";
  };
  return joined({part(cell.num_diverged, " diverged"), part(cell.num_failed, " failed"),
                 part(cell.num_unfinished, " unfinished")});
}

std::string time_text(std::optional<double> seconds) {
  if (!seconds) return "-";
  if (*seconds < 59.5) return fixed(*seconds, 0) + " s";
  const auto [unit, name] = *seconds < 3570     ? std::pair{60, " min"}
                            : *seconds < 171000 ? std::pair{3600, " h"}
                                                : std::pair{86400, " days"};
  const double value = *seconds / unit;
  return fixed(value, value < 9.95 ? 1 : 0) + name;
}

std::string size_text(std::optional<int64_t> num_parameters) {
  if (!num_parameters) return "-";
  const auto size = static_cast<double>(*num_parameters);
  return size < 1e3   ? std::to_string(*num_parameters)
         : size < 1e6 ? fixed(size / 1e3, 1) + "k"
                      : fixed(size / 1e6, 2) + "M";
}

std::string memory_text(std::optional<int64_t> bytes) {
  return bytes ? human_bytes(static_cast<uint64_t>(*bytes)) : "-";
}

std::string gigabytes_text(std::optional<double> value) { return number_text(value, 2, " GB"); }

std::string number_text(std::optional<double> value, int decimals, const char* unit) {
  return value ? fixed(*value, decimals) + unit : "-";
}

std::string accuracy_text(std::optional<double> value) { return number_text(value, 2); }

std::string signed_text(std::optional<double> value) {
  if (!value) return "-";
  // Rounded first, so that -0.001 is not "-0.00".
  const double rounded = std::round(*value * 100) / 100;
  return (rounded < 0 ? "-" : "+") + fixed(std::abs(rounded), 2);
}

std::string ratio_text(std::optional<double> value) { return number_text(value, 2, "x"); }

std::string rate_text(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return "-";
  if (*value >= 1e3 && *value < 1e18) return thousands(std::llround(*value));
  const double size = std::abs(*value);
  return fixed(*value, size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

Emphasis rank_in_column(const Leaderboard& board, const Row& row, size_t column) {
  const auto figure = [&](const Row& of) {
    const Cell& cell = of.cells[column];
    return cell.fail ? std::nullopt : cell.shown_accuracy();
  };
  return rank_of(board, row, figure, [&](const Row& other) {
    return are_ranked(row.cells[column], other.cells[column]);
  });
}

Emphasis rank_of_average(const Leaderboard& board, const Row& row, Average Row::*average) {
  return rank_of(
      board, row, [&](const Row& of) { return (of.*average).ours; },
      [&](const Row& other) { return other.preset == row.preset; });
}

}  // namespace lra::report
