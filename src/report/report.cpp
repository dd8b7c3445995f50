#include "report/report.h"

#include <algorithm>
#include <functional>

#include "base/config.h"
#include "base/error.h"
#include "records/find_setting.h"
#include "report/formats/formats.h"

namespace lra::report {
namespace {

struct NamedFormat {
  std::string_view name;
  std::string (*render)(const ReportInput& input);
  bool keeps_own_data_apart;  // for people; formats for programs have one list of tasks
  std::string (*table)(const Table& table) = nullptr;  // null: has no form for a single table
};

constinit const NamedFormat kFormats[] = {
    // in the order of Format
    {"text", format_text, true, [](const Table& table) { return text_table(table, false); }},
    {"summary", format_summary, false},
    {"md", format_markdown, true, markdown_table},
    {"csv", format_csv, false},
    {"json", format_json, false},
    {"latex", format_latex, false, latex_table},
    {"html", format_html, true},
    // A picture is of one table.
    {"svg", [](const ReportInput& input) { return svg_table(results_table(input.board)); }, false,
     svg_table},
};

}  // namespace

Format parse_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &NamedFormat::name);
  if (found != std::end(kFormats)) return static_cast<Format>(found - kFormats);
  if (name == "tex") return Format::kLatex;  // the ending of such a file
  throw Error({.where = "--format",
               .what = "unknown report format '" + std::string(name) + "'",
               .expected = "text, summary, md, csv, json, latex, html or svg"});
}

std::string render(const std::vector<RunRecord>& records, Format format,
                   const ReportOptions& options) {
  if (records.empty()) {
    throw Error({.where = "report",
                 .what = "there is no run record" +
                         (options.problems.empty() ? "" : " (" + options.problems.front() + ")"),
                 .expected = "run folders, or a folder that holds them",
                 .advice = "make one with 'lra train'"});
  }
  const NamedFormat& named = kFormats[static_cast<size_t>(format)];
  // Cells of the leaderboard name their runs by their place among the records.
  std::vector<RunRecord> ordered = records;
  const auto masked_begin =
      std::stable_partition(ordered.begin(), ordered.end(),
                            [](const RunRecord& record) { return !is_masked_run(record.config); });
  const auto own_begin =
      named.keeps_own_data_apart && !options.results
          ? std::stable_partition(ordered.begin(), masked_begin, std::not_fn(is_outside_arena))
          : masked_begin;
  Leaderboard board = build_leaderboard({ordered.begin(), own_begin});
  Leaderboard own = build_leaderboard({own_begin, masked_begin});
  own.first_record = static_cast<size_t>(own_begin - ordered.begin());
  board.speeds.insert(board.speeds.end(), own.speeds.begin(), own.speeds.end());
  board.warnings.insert(board.warnings.end(), own.warnings.begin(), own.warnings.end());
  const std::vector<SpeedGrid> grids = speed_grids(board.speeds);
  const ReportInput input{ordered, board, own, grids, options};
  if (!options.results) return named.render(input);
  if (named.table) return named.table(results_table(board, *options.results));
  throw Error({.where = "--format",
               .what = std::string(named.name) + " has no form for the table of results alone",
               .expected = "text, md, latex or svg",
               .advice = "leave --columns and --rows out"});
}

}  // namespace lra::report
