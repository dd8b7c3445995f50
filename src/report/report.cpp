#include "report/report.h"

#include "base/config.h"
#include "base/error.h"
#include "report/formats.h"

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

}  // namespace

Format parse_format(std::string_view name) {
  std::vector<std::string> known;
  for (const NamedFormat& format : kFormats) {
    if (format.name == name) return format.format;
    known.emplace_back(format.name);
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
  const Leaderboard board = build_leaderboard(records);
  const std::vector<SpeedGrid> grids = speed_grids(board.speeds);
  const ReportInput input{records,
                          board,
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
