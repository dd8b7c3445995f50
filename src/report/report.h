// The room's entry: run records in, a report in one of eight formats out.
//
//   std::vector<std::string> problems;
//   const auto records = report::collect_records({"runs"}, &problems);
//   std::cout << report::render(records, report::Format::kText, {.problems = problems});
//
// Goals of the room `report`: every figure from records alone, the same in each format, with its
// interval and marks. Non-goals: to compute with tensors, to read data, network requests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"
#include "report/tables/tables.h"

namespace lra::report {

enum class Format { kText, kSummary, kMarkdown, kCsv, kJson, kLatex, kHtml, kSvg };

// "text", "summary", "md", "csv", "json", "latex", "html" or "svg"; anything else is an lra::Error.
Format parse_format(std::string_view name);

// Throws lra::Error if there is no record, or if the records have two versions of one task.
std::string render(const std::vector<RunRecord>& records, Format format,
                   const ReportOptions& options = {});

// A run on one page, in the form of a model card: Markdown under a YAML head. The head has the
// fields of model cards (language of tags, model-index with task, data and metric), the text has
// the result, its protocol and provenance, and the settings. `run` is a training run.
std::string results_card(const RunRecord& run);

// A file name for it: "performer-text-seed0-0123abcd.md", only letters, digits, - and _.
std::string card_name(const RunRecord& run);

}  // namespace lra::report
