// The room's entry: run records in, a report in one of seven formats out.
//
//   std::vector<std::string> problems;
//   const auto records = report::collect_records({"runs"}, &problems);
//   std::cout << report::render(records, report::Format::kText, {.problems = problems});
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"
#include "report/record_files.h"

namespace lra::report {

enum class Format { kText, kMarkdown, kCsv, kJson, kLatex, kHtml, kLmEval };

// "text", "md", "csv", "json", "latex", "html" or "lm-eval"; anything else is an lra::Error.
Format parse_format(std::string_view name);

struct ReportOptions {
  std::string title = "Long Range Arena";
  std::vector<std::string> problems = {};  // from collect_records: listed in the notes
  std::vector<Analysis> analyses = {};     // from collect_analyses
  bool color = false;                      // terminal colours; Format::kText only
};

// Throws lra::Error when there is no record, or when the records hold two versions of one task.
std::string render(const std::vector<RunRecord>& records, Format format,
                   const ReportOptions& options = {});

}  // namespace lra::report
