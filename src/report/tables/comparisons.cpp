#include "report/tables/comparisons.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"

namespace lra::report {
namespace {

constexpr int kMinSeeds = 3;  // for a test over seeds: two differences tell nothing
constexpr double kLevel = 0.05;

using SeededRuns = std::map<uint64_t, const RunRecord*>;

SeededRuns runs_of(const ReportInput& input, const Leaderboard& board, const Cell& cell) {
  SeededRuns runs;
  for (const size_t place : cell.runs) {
    const RunRecord& run = input.records[board.first_record + place];
    if (has_figure(run)) runs.emplace(run.seed, &run);
  }
  return runs;
}

// Which test examples the run predicted right; nothing if it did not keep them.
const BreakdownResult* kept_examples(const ReportInput& input, const RunRecord& run) {
  for (const Analysis& analysis : input.options.analyses) {
    const AnalysisRecord& record = analysis.record;
    if (record.breakdown && record.split == "test" && record.fingerprint == run.fingerprint &&
        record.seed == run.seed && record.data_hash == run.data_hash &&
        record.step == run.test->step && record.num_examples == run.test->num_examples) {
      return &*record.breakdown;
    }
  }
  return nullptr;
}

void test_over_examples(const ReportInput& input, const RunRecord& a, const RunRecord& b,
                        PairedTest& comparison) {
  const BreakdownResult* first = kept_examples(input, a);
  const BreakdownResult* second = kept_examples(input, b);
  if (!first || !second || a.data_hash != b.data_hash) return;
  const std::vector<bool> ours = first->correct_bits(), theirs = second->correct_bits();
  if (ours.size() != theirs.size()) return;
  for (size_t i = 0; i < ours.size(); ++i) {
    comparison.only_first += ours[i] && !theirs[i];
    comparison.only_second += theirs[i] && !ours[i];
  }
  comparison.p_over_examples = mcnemar_p(comparison.only_first, comparison.only_second);
  comparison.difference = 100.0 *
                          static_cast<double>(comparison.only_first - comparison.only_second) /
                          static_cast<double>(std::max<size_t>(ours.size(), 1));
}

// Where it cannot be, the difference stays that of the examples that were tested.
void test_over_seeds(const std::vector<double>& differences, PairedTest& comparison) {
  const Summary summary = summarize(differences);
  if (!comparison.p_over_examples) comparison.difference = summary.mean;
  if (summary.count < kMinSeeds || *summary.deviation < 1e-9) return;
  comparison.difference = summary.mean;
  comparison.interval = summary.half_width95;
  const double error = *summary.deviation / std::sqrt(summary.count);
  comparison.p_over_seeds = t_test_p(summary.mean / error, summary.count - 1);
}

PairedTest compared(const ReportInput& input, const Leaderboard& board, size_t column,
                    const Row& first, const Row& second) {
  const Cell &ours = first.cells[column], &theirs = second.cells[column];
  PairedTest comparison{.board = &board, .column = column, .first = &first, .second = &second};
  const SeededRuns a = runs_of(input, board, ours), b = runs_of(input, board, theirs);
  std::vector<double> differences;
  for (const auto& [seed, run] : a) {
    const auto other = b.find(seed);
    if (other == b.end()) continue;
    if (differences.empty()) test_over_examples(input, *run, *other->second, comparison);
    differences.push_back(100 * (run->test->accuracy - other->second->test->accuracy));
  }
  comparison.num_seeds = static_cast<int>(differences.size());
  if (differences.empty()) differences = {ours.accuracy.mean - theirs.accuracy.mean};
  test_over_seeds(differences, comparison);
  return comparison;
}

// The best of k models was chosen by the results that are tested: all k (k - 1) / 2 pairs were
// compared then, of which only the k - 1 with the best are shown.
size_t num_hidden_pairs(const std::vector<PairedTest>& comparisons) {
  std::map<std::pair<const Row*, size_t>, size_t> shown;  // by the first model and the column
  for (const PairedTest& c : comparisons) shown[{c.first, c.column}] += c.p().has_value();
  size_t hidden = 0;
  for (const auto& [of, count] : shown) hidden += count * (count - 1) / 2;
  return hidden;
}

void adjust(std::vector<PairedTest>& comparisons, bool best_is_first) {
  std::vector<double> p_values;
  for (const PairedTest& c : comparisons) {
    if (c.p()) p_values.push_back(*c.p());
  }
  if (best_is_first) p_values.insert(p_values.end(), num_hidden_pairs(comparisons), 1.0);
  const std::vector<double> adjusted = holm_adjusted(p_values);
  auto next = adjusted.begin();
  for (PairedTest& c : comparisons) {
    if (c.p()) c.p_adjusted = *next++;
  }
}

std::string p_text(std::optional<double> p) {
  if (!p) return "-";
  return *p < 0.001 ? "< 0.001" : fixed(*p, 3);
}

std::string test_text(const PairedTest& c) {
  if (c.p_over_seeds) return "paired t, " + std::to_string(c.num_seeds) + " seeds";
  if (!c.p_over_examples) return "-";
  return "McNemar, " + thousands(c.only_first) + " : " + thousands(c.only_second);
}

bool is_named(const Row& row, const std::string& name) {
  return row.model == name || row.title == name;
}

void refuse_unknown(const ReportInput& input) {
  if (input.options.compare.empty()) return;
  std::set<std::string> models;
  for (const Leaderboard* board : {&input.board, &input.own}) {
    for (const Row& row : board->rows) {
      if (is_named(row, input.options.compare)) return;
      models.insert(row.model);
    }
  }
  throw Error({.where = "--compare",
               .what = "no run is of the model " + in_quotes(input.options.compare, 100),
               .expected = "one of " + quoted_list({models.begin(), models.end()}, 12)});
}

void compare_column(const ReportInput& input, const Leaderboard& board, size_t column,
                    std::vector<PairedTest>& all) {
  for (const Row& first : board.rows) {
    const bool is_first = input.options.compare.empty()
                              ? rank_in_column(board, first, column) == Emphasis::kBest
                              : is_named(first, input.options.compare);
    if (!is_first) continue;
    const auto begin = static_cast<std::ptrdiff_t>(all.size());
    for (const Row& second : board.rows) {
      if (&second == &first || second.is_self_pretrained != first.is_self_pretrained) continue;
      if (!are_ranked(first.cells[column], second.cells[column])) continue;
      const bool is_there = std::ranges::any_of(all, [&](const PairedTest& c) {
        return c.first == &second && c.second == &first && c.column == column;
      });
      if (is_there) continue;  // two models are best
      all.push_back(compared(input, board, column, first, second));
    }
    std::ranges::stable_sort(all.begin() + begin, all.end(), {},
                             [](const PairedTest& c) { return std::abs(c.difference); });
  }
}

TitledCells line_of(const PairedTest& c) {
  const std::string verdict = c.verdict();
  const bool is_shown = verdict.starts_with("better") || verdict.starts_with("worse");
  const std::string interval = c.interval ? " ± " + fixed(*c.interval, 2) : "";
  return {{"Task", {c.board->columns[c.column].title}},
          {"Model", {row_label(*c.board, *c.first, c.first->cells[c.column].settings)}},
          {"Compared with", {row_label(*c.board, *c.second, c.second->cells[c.column].settings)}},
          {"Difference", {signed_text(c.difference) + interval}},
          {"Test", {test_text(c)}},
          {"p", {p_text(c.p())}},
          {"p adjusted", {p_text(c.p_adjusted)}},
          {"The model is", {verdict, is_shown ? Emphasis::kPlain : Emphasis::kQuiet}}};
}

}  // namespace

std::string PairedTest::verdict() const {
  if (!p_adjusted) return "not tested";
  if (*p_adjusted >= kLevel || difference == 0) return "no difference shown";
  return std::string(difference > 0 ? "better" : "worse") + (p_over_seeds ? "" : " (these runs)");
}

std::vector<PairedTest> compare_models(const ReportInput& input) {
  refuse_unknown(input);
  std::vector<PairedTest> all;
  for (const Leaderboard* board : {&input.board, &input.own}) {
    for (size_t column = 0; column < board->columns.size(); ++column) {
      compare_column(input, *board, column, all);
    }
  }
  adjust(all, input.options.compare.empty());
  return all;
}

Table comparisons_table(const ReportInput& input) {
  Table table{
      .title = "Comparisons",
      .caption =
          "The best model of each task and setting, or the one that --compare names, and every "
          "other one of equal settings and budget. Paired t: the test over at least three common "
          "seeds, with the mean difference in points ± its 95 % interval. McNemar: the exact test "
          "on the test examples of two runs of one seed, with their difference; the counts are the "
          "examples that only the first and only the second predicted right. It tells these runs "
          "apart, not models trained with other seeds. Adjusted: Holm's correction for all tests "
          "of this table and, without --compare, for the pairs among which the best was chosen. "
          "Better or worse: adjusted p below 0.05.",
      .num_left = 3,
      .num_keys = 2,
      .is_list = true,
      .num_right = 1};
  const std::vector<PairedTest> all = compare_models(input);
  if (std::ranges::any_of(all, [](const PairedTest& c) { return c.p().has_value(); })) {
    for (const PairedTest& c : all) table.add(line_of(c));
  }
  return table;
}

}  // namespace lra::report
