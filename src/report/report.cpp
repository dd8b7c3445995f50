#include "report/report.h"

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "records/find_setting.h"
#include "report/formats/formats.h"
#include "report/tables/run_facts.h"

namespace lra::report {
namespace {

struct NamedFormat {
  std::string_view name;
  Format format;
  std::string (*render)(const ReportInput& input);
};

constinit const NamedFormat kFormats[] = {
    {"text", Format::kText, format_text},       {"summary", Format::kSummary, format_summary},
    {"md", Format::kMarkdown, format_markdown}, {"csv", Format::kCsv, format_csv},
    {"json", Format::kJson, format_json},       {"latex", Format::kLatex, format_latex},
    {"html", Format::kHtml, format_html},       {"lm-eval", Format::kLmEval, format_lm_eval},
};

bool is_benchmark(const RunRecord& record) { return !is_own_data(record); }

// True for formats for people; formats for programs have one list of tasks.
bool keeps_own_data_apart(Format format) {
  return format == Format::kText || format == Format::kMarkdown || format == Format::kHtml;
}

}  // namespace

Format parse_format(std::string_view name) {
  for (const NamedFormat& format : kFormats) {
    if (format.name == name) return format.format;
  }
  throw Error({.where = "--format",
               .what = "unknown report format '" + std::string(name) + "'",
               .expected = "text, summary, md, csv, json, latex, html or lm-eval"});
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
  // Cells of the leaderboard name their runs by their place among the records.
  std::vector<RunRecord> ordered = records;
  const auto masked_begin =
      std::stable_partition(ordered.begin(), ordered.end(),
                            [](const RunRecord& record) { return !is_masked_run(record.config); });
  const auto own_begin = keeps_own_data_apart(format)
                             ? std::stable_partition(ordered.begin(), masked_begin, is_benchmark)
                             : masked_begin;
  Leaderboard board = build_leaderboard({ordered.begin(), own_begin});
  const Leaderboard own = build_leaderboard({own_begin, masked_begin});
  board.speeds.insert(board.speeds.end(), own.speeds.begin(), own.speeds.end());
  board.warnings.insert(board.warnings.end(), own.warnings.begin(), own.warnings.end());
  const std::vector<SpeedGrid> grids = speed_grids(board.speeds);
  const ReportInput input{ordered,
                          board,
                          own,
                          options.analyses,
                          grids,
                          options.title,
                          options.problems,
                          options.literature,
                          options.show_literature,
                          options.color};
  for (const NamedFormat& named : kFormats) {
    if (named.format == format) return named.render(input);
  }
  check_failed(__FILE__, __LINE__, "a format is missing in the table");
}

}  // namespace lra::report
