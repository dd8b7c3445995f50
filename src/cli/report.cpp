// lra report: leaderboard and tables from the records of finished runs.
#include "report/report.h"

#include <unistd.h>

#include <cstdio>

#include "base/atomic_file.h"
#include "cli/command.h"

namespace lra::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> paths;
  std::string format, out, title = "Long Range Arena";
};

// The named format, else the one that the file's ending says, else text.
report::Format chosen_format(const ReportArguments& a, const CommonOptions& common) {
  if (!a.format.empty()) return report::parse_format(a.format);
  if (common.json) return report::Format::kJson;
  const size_t dot = a.out.find_last_of('.');
  if (a.out.empty() || dot == std::string::npos) return report::Format::kText;
  const std::string ending = a.out.substr(dot + 1);
  return report::parse_format(ending == "tex" ? "latex" : ending == "txt" ? "text" : ending);
}

ExitCode run_report(const Program& program, const ReportArguments& a) {
  report::ReportOptions options{.title = a.title};
  const auto records = report::collect_records(a.paths, &options.problems);
  options.analyses = report::collect_analyses(a.paths, &options.problems);
  options.color = a.out.empty() && ::isatty(STDOUT_FILENO);
  const std::string text = report::render(records, chosen_format(a, program.common), options);
  if (a.out.empty()) {
    std::printf("%s", text.c_str());
  } else {
    write_file_atomically(a.out, text);
    if (!program.common.quiet)
      std::fprintf(stderr, "report of %zu runs: %s\n", records.size(), a.out.c_str());
  }
  return ExitCode::kDone;
}

}  // namespace

void add_report(CLI::App& app, Program& program) {
  auto a = std::make_shared<ReportArguments>();
  auto* command = add_command(app, program, "report", "leaderboard and tables from finished runs",
                              [&program, a] { return run_report(program, *a); });
  command->add_option("paths", a->paths, "run folders, or folders that hold some")->required();
  command
      ->add_option("--format", a->format,
                   "text, md, csv, json, latex or html; default: by the ending of --out")
      ->check(CLI::IsMember({"text", "md", "csv", "json", "latex", "html"}));
  command->add_option("--out", a->out, "file to write; default: print");
  command->add_option("--title", a->title, "heading of the report");
}

}  // namespace lra::cli
