// lra report: leaderboard and tables from the records of finished runs.
#include "report/report.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/text_format.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "io/atomic_file.h"
#include "io/overwrite.h"
#include "records/check_record.h"
#include "training/settings/weights_file.h"

namespace lra::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> paths = {"runs"};
  std::string format, out;
  std::vector<std::string> columns, rows;
  bool card = false, check = false;
  report::ReportOptions options;
};

// The named format, else the one of the file's ending, else text.
report::Format chosen_format(const ReportArguments& a, const CommonOptions& common) {
  if (!a.format.empty()) return report::parse_format(a.format);
  if (common.json) return report::Format::kJson;
  const std::string ending = std::filesystem::path(a.out).extension().string();
  if (ending.empty() || ending == ".txt") return report::Format::kText;
  for (const std::string known : {"md", "csv", "json", "html", "svg", "tex"})
    if (ending == "." + known) return report::parse_format(known);
  refuse("--out", "no format has the ending '" + printable(ending) + "'",
         ".txt, .md, .csv, .json, .tex, .svg or .html", "or name the format with --format");
}

// The kind of file that an earlier report of the format is.
OutputKind kind_of(report::Format format, bool is_table) {
  switch (format) {
    case report::Format::kHtml:
      return {.name = "a page", .marks = {"<!doctype html>", "Content-Security-Policy"}};
    case report::Format::kMarkdown:
      if (is_table) return {.name = "a table in Markdown", .marks = {"| Model |", "\n| --- |"}};
      return {.name = "a report in Markdown", .marks = {"# ", "\n\n## "}};
    case report::Format::kCsv:
      return {.name = "a report in CSV", .marks = {"kind,model,preset,"}};
    case report::Format::kJson:
      return {.name = "a report in JSON", .marks = {"{\n  \"schema\"", "\"num_runs\""}};
    case report::Format::kLatex:
      return {.name = "a table in LaTeX", .marks = {"\\begin{table}", "\\toprule"}};
    case report::Format::kSvg:
      return {.name = "a picture of a table", .marks = {"<svg xmlns=", "font-family=\"Helvetica"}};
    case report::Format::kText:
    case report::Format::kSummary:
      break;
  }
  return {.name = "a report in text", .marks = {"", "\n\n", "\n-----"}};
}

// A name that leads nowhere is mistyped; a record that cannot be read is left out and named.
void refuse_missing(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code error;
    const auto type = std::filesystem::status(path, error).type();
    if (type != std::filesystem::file_type::not_found) continue;
    refuse(path, "there is no such folder or file",
           "run folders, or folders that contain run folders");
  }
}

void tell_left_out(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    std::fprintf(stderr, "left out: %s\n", printable(problem).c_str());
  }
}

// A card for each training run: printed, or as files of the folder --out.
ExitCode write_cards(const Program& program, const ReportArguments& a) {
  std::vector<std::string> problems;
  const auto records = report::collect_records(a.paths, &problems);
  tell_left_out(problems);
  int count = 0;
  if (!a.out.empty()) make_folder(a.out);
  for (const RunRecord& record : records) {
    if (record.kind != "train") continue;
    const std::string card = report::results_card(record);
    if (a.out.empty()) {
      std::printf("%s%s", count > 0 ? "\n" : "", card.c_str());
    } else {
      write_file_atomically(a.out + "/" + report::card_name(record), card);
    }
    ++count;
  }
  if (count == 0) {
    refuse("report --card", "there is no record of a training run",
           "run folders, or a folder that holds them", "make one with 'lra train'");
  }
  if (!a.out.empty() && !program.common.quiet) {
    std::fprintf(stderr, "%d cards: %s\n", count, a.out.c_str());
  }
  return ExitCode::kDone;
}

ExitCode check_records(const Program& program, const ReportArguments& a) {
  std::vector<std::string> findings, refused;
  const auto files = report::find_record_files(a.paths, &findings, true);
  for (const std::string& file : files) {
    const size_t before = findings.size();
    try {
      const RunRecord record = read_consistent_record(file);
      std::ranges::move(training::check_checkpoints_beside(record, file),
                        std::back_inserter(findings));
    } catch (const Error& error) {
      findings.push_back(error.what());
    }
    if (findings.size() > before) refused.push_back(file);
  }
  std::string text;
  for (const std::string& finding : findings) text += printable(finding) + "\n";
  if (findings.empty()) {
    text = std::to_string(files.size()) +
           (files.size() == 1 ? " record is consistent\n" : " records are consistent\n");
  }
  print_result(program, {{"records", files.size()}, {"findings", findings}, {"refused", refused}},
               text);
  return findings.empty() ? ExitCode::kDone : ExitCode::kUserError;
}

ExitCode run_report(const Program& program, const ReportArguments& a) {
  if (a.check) return check_records(program, a);
  if (program.common.json && (a.card || (!a.format.empty() && a.format != "json"))) {
    refuse("--json", "the output is set to " + (a.card ? "cards" : a.format), "one of the two",
           "leave --json out");
  }
  refuse_missing(a.paths);
  if (a.card) return write_cards(program, a);
  const report::Format format = chosen_format(a, program.common);
  const bool is_table = !a.columns.empty() || !a.rows.empty();
  if (!a.out.empty()) refuse_to_overwrite(a.out, kind_of(format, is_table), "--out");
  report::ReportOptions options = a.options;
  options.literature = published_results();
  if (is_table) {
    options.results =
        report::ResultsChoice{.columns = a.columns,
                              .with_paper = std::ranges::count(a.rows, "paper") > 0,
                              .with_baselines = std::ranges::count(a.rows, "baselines") > 0};
  }
  const auto records = report::collect_records(a.paths, &options.problems);
  options.analyses = report::collect_analyses(a.paths, &options.problems);
  options.color = a.out.empty() && shows_color();
  options.braille = a.out.empty() && shows_utf8();
  const std::string text = report::render(records, format, options);
  // The other formats have a place for it.
  const bool in_notes =
      !is_table && (format == report::Format::kText || format == report::Format::kMarkdown ||
                    format == report::Format::kJson || format == report::Format::kHtml);
  if (!in_notes) tell_left_out(options.problems);
  if (a.out.empty()) {
    std::printf("%s", text.c_str());
  } else {
    make_folder(folder_of(a.out));
    write_file_atomically(a.out, text);
    if (program.common.quiet) return ExitCode::kDone;
    const size_t left_out = options.problems.size();
    const std::string notes =
        left_out == 0 || !in_notes ? "" : "; left out, see its notes: " + std::to_string(left_out);
    std::fprintf(stderr, "report of %zu %s: %s%s\n", records.size(),
                 records.size() == 1 ? "run" : "runs", a.out.c_str(), notes.c_str());
  }
  return ExitCode::kDone;
}

}  // namespace

void add_report(CLI::App& app, Program& program) {
  auto a = std::make_shared<ReportArguments>();
  auto* command = add_command(app, program, "report", "make a leaderboard and tables from runs",
                              [&program, a] { return run_report(program, *a); });
  command->add_option("paths", a->paths,
                      "run folders, or folders that contain run folders (default runs)");
  auto* format =
      command
          ->add_option(
              "--format", a->format,
              "text, summary (fits a terminal), md, csv, json, latex, html or svg; default: by the "
              "ending of --out, else text")
          ->check(CLI::IsMember({"text", "summary", "md", "csv", "json", "latex", "html", "svg"}));
  command->add_option("--out", a->out,
                      "file to write (with --card: a folder); replaces only an earlier one of the "
                      "same kind; default: print");
  auto* card =
      command
          ->add_flag("--card", a->card,
                     "write a results card for each training run: Markdown with YAML front matter")
          ->excludes(format);
  command
      ->add_flag("--check", a->check,
                 "check records: each agrees with its hash, and with metrics.jsonl and the weights "
                 "next to it; prints one line per contradiction and exits with code 2")
      ->excludes(card);
  command->add_flag("--literature", a->options.show_literature,
                    "show published results of other papers, never ranked with the runs: opened on "
                    "the page, a table in text and Markdown");
  command->add_option("--title", a->options.title, "heading of the report");
  command->add_option("--compare", a->options.compare,
                      "test this model against every other one instead of the best of each task");
  command
      ->add_option("--columns", a->columns,
                   "only the table of results, as text, md, latex or svg, with these columns, "
                   "separated by commas: tasks, average, parameters, time, memory, seeds")
      ->delimiter(',');
  command
      ->add_option("--rows", a->rows,
                   "only the table of results, and below the models these rows: paper, baselines")
      ->delimiter(',')
      ->check(CLI::IsMember({"paper", "baselines"}));
}

}  // namespace lra::cli
