#include "report/tables/tables.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"

namespace lra::report {
namespace {

// The largest value among the tasks with a figure: "1 to 3" where they differ is not for a paper.
template <typename Value>
auto most_of(const Row& row, const Value& value) {
  std::decay_t<std::invoke_result_t<const Value&, const Cell&>> most{};
  for (const Cell& cell : row.cells) {
    if (cell.accuracy.count > 0) most = std::max(most, std::invoke(value, cell));
  }
  return most;
}

// A column of any kind.
struct ResultColumn {
  std::string name, title;
  TableCell (*cell)(const Leaderboard& board, const Row& row);
};

const ResultColumn kOtherColumns[] = {
    {"average", "Average",
     [](const Leaderboard& board, const Row& row) {
       const auto average = row.scored.ours ? &Row::scored : &Row::present;
       return TableCell{accuracy_text((row.*average).ours), rank_of_average(board, row, average)};
     }},
    {"parameters", "Parameters",
     [](const Leaderboard&, const Row& row) {
       return TableCell{size_text(most_of(row, &Cell::num_parameters))};
     }},
    {"time", "Training time",
     [](const Leaderboard&, const Row& row) {
       return TableCell{time_text(most_of(row, &Cell::train_seconds))};
     }},
    {"memory", "Peak memory",
     [](const Leaderboard&, const Row& row) {
       return TableCell{
           memory_text(most_of(row, [](const Cell& c) { return c.speed.peak_memory_bytes; }))};
     }},
    {"seeds", "Seeds", [](const Leaderboard&, const Row& row) {
       return TableCell{
           std::to_string(most_of(row, [](const Cell& c) { return c.accuracy.count; }))};
     }}};

const ResultColumn* other_column(const std::string& name) {
  const auto found = std::ranges::find(kOtherColumns, name, &ResultColumn::name);
  return found == std::end(kOtherColumns) ? nullptr : found;
}

size_t place_of(const Leaderboard& board, const std::string& name) {
  const auto found = std::ranges::find(board.columns, name, &TaskColumn::task);
  if (found != board.columns.end()) return static_cast<size_t>(found - board.columns.begin());
  std::vector<std::string> known = mapped(board.columns, &TaskColumn::task);
  for (const ResultColumn& column : kOtherColumns) known.push_back(column.name);
  throw Error({.where = "--columns",
               .what = "no column " + in_quotes(name, 100),
               .expected = "some of " + quoted_list(known, 20)});
}

std::vector<std::string> usual_columns(const Leaderboard& board) {
  std::vector<std::string> names;
  for (size_t i = 0; i < board.columns.size(); ++i) {
    const auto has_figure = [&](const Row& row) {
      return row.cells[i].shown_accuracy().has_value();
    };
    if (std::ranges::any_of(board.rows, has_figure)) names.push_back(board.columns[i].task);
  }
  const auto has_average = [](const Row& row) { return row.scored.ours || row.present.ours; };
  if (names.size() > 1 && std::ranges::any_of(board.rows, has_average)) names.push_back("average");
  return names;
}

// The numbers of seeds of all figures.
std::set<int> seeds_of(const Leaderboard& board) {
  std::set<int> counts;
  for (const Row& row : board.rows) {
    for (const Cell& cell : row.cells) counts.insert(cell.accuracy.count);
  }
  counts.erase(0);
  return counts;
}

TableCell figure_cell(const Leaderboard& board, const Row& row, size_t column, bool says_seeds) {
  const Cell& cell = row.cells[column];
  if (!cell.accuracy.count) return {"-"};
  std::string text = cell.fail ? "FAIL" : fixed(cell.accuracy.mean, 2);
  if (cell.accuracy.deviation && !cell.fail) text += " ± " + fixed(*cell.accuracy.deviation, 2);
  const std::string n = says_seeds ? "n=" + std::to_string(cell.accuracy.count) : "";
  const std::string remark = joined({n, lost_text(cell)});
  if (!remark.empty()) text += " (" + remark + ")";
  return {text, rank_in_column(board, row, column), cell.marks};
}

std::string caption_of(const std::set<int>& seeds) {
  const std::string figure = "Test accuracy in percent";
  if (seeds.empty() || *seeds.rbegin() == 1) return figure + ", one seed.";
  return figure + ", mean ± standard deviation over " +
         (seeds.size() == 1 ? std::to_string(*seeds.begin()) : "n") + " seeds.";
}

// A row without our runs: `figure(column)` for tasks, `average`, and "-" elsewhere.
template <typename Figure>
Cells plain_row(const Leaderboard& board, const std::vector<std::string>& columns,
                const std::string& name, const std::string& average, const Figure& figure) {
  std::vector<std::string> texts = {name};
  for (const std::string& column : columns) {
    texts.push_back(column == "average"    ? average
                    : other_column(column) ? "-"
                                           : accuracy_text(figure(place_of(board, column))));
  }
  return quiet_cells(texts);
}

void add_paper_rows(const Leaderboard& board, const std::vector<std::string>& columns,
                    Table& table) {
  for (const PaperModel& model : paper_models()) {
    table.rows.push_back(
        plain_row(board, columns, std::string(model.label) + " (Tay et al. 2021)",
                  fixed(paper_average(model, PaperVersion::kV1), 2), [&](size_t place) {
                    const auto task = board.columns[place].paper;
                    return task ? paper_accuracy(model, *task, PaperVersion::kV1) : std::nullopt;
                  }));
  }
}

}  // namespace

Table results_table(const Leaderboard& board, const ResultsChoice& choice) {
  const std::vector<std::string> columns =
      choice.columns.empty() ? usual_columns(board) : choice.columns;
  const std::set<int> seeds = seeds_of(board);
  const bool has_cost = std::ranges::any_of(columns, [](const std::string& name) {
    return name == "parameters" || name == "time" || name == "memory";
  });
  const std::string of_cost =
      has_cost && board.columns.size() > 1 ? "Costs are those of the costliest task." : "";
  Table table{.title = "Results",
              .caption = joined({caption_of(seeds), of_cost, marks_legend(board)}, " "),
              .header = {"Model"}};
  for (const std::string& name : columns) {
    const ResultColumn* other = other_column(name);
    table.header.push_back(other ? other->title : board.columns[place_of(board, name)].title);
  }
  for (const Row& row : board.rows) {
    const auto has_figure = [](const Cell& cell) { return cell.accuracy.count > 0; };
    if (std::ranges::none_of(row.cells, has_figure)) continue;
    Cells& cells = table.rows.emplace_back(Cells{{row_label(board, row)}});
    for (const std::string& name : columns) {
      const ResultColumn* other = other_column(name);
      cells.push_back(other ? other->cell(board, row)
                            : figure_cell(board, row, place_of(board, name), seeds.size() > 1));
    }
  }
  if (choice.with_baselines) {
    for (const BaselineRow& baseline : board.baselines) {
      table.rows.push_back(plain_row(board, columns, "trivial: " + baseline.name,
                                     accuracy_text(baseline.scored),
                                     [&](size_t place) { return baseline.accuracy[place]; }));
    }
  }
  if (choice.with_paper) add_paper_rows(board, columns, table);
  return table;
}

}  // namespace lra::report
