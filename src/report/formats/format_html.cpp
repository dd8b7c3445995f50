// One self-contained page: no network, no foreign script. The Content-Security-Policy allows only
// our style sheet and our script, by their hashes, and embedded pictures, so even markup that got
// past the escapes could not run or load anything.
#include <set>

#include "report/formats/formats.h"
#include "report/formats/html_parts.h"
#include "report/formats/markup.h"
#include "report/report.h"
#include "report/tables/comparisons.h"
#include "report/tables/literature.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

std::string head_html(const std::string& title) {
  const std::string policy = "default-src 'none'; img-src data:; style-src '" +
                             csp_hash(page_style()) + "'; script-src '" + csp_hash(page_script()) +
                             "'; base-uri 'none'; form-action 'none'";
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
         policy +
         "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"referrer\" content=\"no-referrer\">\n<title>" +
         html(title) + "</title>\n<style>" + std::string(page_style()) + "</style>\n</head>\n";
}

struct Section {
  std::string id, title, body;
};

// Shown by the script, which makes them work.
constexpr const char* kTools =
    "<div class=\"tools\" hidden><label>Find <input type=\"search\" placeholder=\"model, task, "
    "setting\"></label><div role=\"group\" aria-label=\"Colors\">"
    "<button type=\"button\" data-theme=\"auto\" aria-pressed=\"true\">Auto</button>"
    "<button type=\"button\" data-theme=\"light\" aria-pressed=\"false\">Light</button>"
    "<button type=\"button\" data-theme=\"dark\" aria-pressed=\"false\">Dark</button></div>"
    "<output aria-live=\"polite\"></output></div>\n";

std::string count_text(size_t count, const std::string& one, const std::string& many = "") {
  const std::string name = count == 1 ? one : many.empty() ? one + "s" : many;
  return "<b>" + std::to_string(count) + "</b> " + name;
}

std::string header_html(const ReportInput& input, const std::vector<Section>& sections) {
  std::set<std::string> models;
  for (const RunRecord& record : input.records) models.insert(record.model);
  std::string latest;
  size_t trained = 0;
  for (const RunRecord& record : input.records) {
    trained += record.kind == "train";
    latest = std::max(latest, record.provenance.finished_utc);
  }
  std::string text = "<header>\n<h1>" + html(input.options.title) + "</h1>\n<p class=\"facts\">" +
                     count_text(trained, "run") + ", " +
                     count_text(input.records.size() - trained, "measurement") + ", " +
                     count_text(models.size(), "model") + ", " +
                     count_text(input.board.columns.size() + input.own.columns.size(), "task");
  if (!latest.empty()) text += ", the latest finished " + html(latest.substr(0, 10));
  text += "</p>\n<nav aria-label=\"Sections\">";
  for (const Section& section : sections) {
    text += "<a href=\"#" + section.id + "\">" + html(section.title) + "</a>";
  }
  return text + "</nav>\n" + kTools + "</header>\n";
}

template <typename Lines>
std::string list_html(const Lines& lines, const char* list_class) {
  std::string text = std::string("<ul class=\"") + list_class + "\">\n";
  for (const auto& line : lines) text += "<li>" + html(line) + "</li>\n";
  return text + "</ul>\n";
}

// A list of lines behind their number: "7 warnings".
std::string folded_html(const std::vector<std::string>& lines, const std::string& one,
                        const std::string& many) {
  if (lines.empty()) return "";
  return "<details class=\"fold\"><summary>" + count_text(lines.size(), one, many) +
         "</summary>\n" + list_html(lines, "notes") + "</details>\n";
}

std::string board_section(const ReportInput& input) {
  const std::string warnings =
      folded_html(input.board.warnings, "warning", "warnings") +
      folded_html(input.options.problems, "file left out", "files left out");
  return leaderboard_html(input) + table_html(best_table(input.board)) + warnings +
         quality_and_speed_html(input);
}

// Published results of the field, one click away.
std::string published_section(const ReportInput& input) {
  if (input.options.literature.results.empty() || input.board.rows.empty()) return "";
  const Table table = literature_table(input.options.literature);
  return std::string("<details class=\"more-rows\"") +
         (input.options.show_literature ? " open" : "") + "><summary><b>" +
         std::to_string(table.rows.size()) +
         "</b> published results, not ranked with the runs: protocols, sizes and seeds differ"
         "</summary>\n<p class=\"caption\">" +
         html(table.caption) + "</p>\n" + bare_table_html(table) + "</details>\n";
}

std::string tables_section(const std::vector<Table>& tables) {
  std::string text;
  for (const Table& table : tables) text += table_html(table);
  return text;
}

std::string paper_tables_section(const ReportInput& input) {
  return tables_section(efficiency_tables(input, "train")) +
         tables_section({generalization_table(input.options.analyses)}) +
         tables_section(efficiency_tables(input, "infer")) +
         tables_section({convergence_table(input.options.analyses)}) + missing_tables_html(input);
}

// A table that has the section's title.
std::string table_section(const Table& table) {
  if (table.rows.empty()) return "";
  return "<p class=\"caption\">" + html(table.caption) + "</p>\n" + bare_table_html(table);
}

std::string curves_section(const ReportInput& input) {
  const std::string charts =
      curves_html(input.records, input.board) + curves_html(input.records, input.own);
  return charts.empty() ? "" : "<div class=\"charts\">\n" + charts + "</div>\n";
}

}  // namespace

std::string format_html(const ReportInput& input) {
  std::vector<Section> sections = {
      {"leaderboard", "Leaderboard", board_section(input)},
      {"own-data", "Outside of the arena", table_section(own_data_table(input.own))},
      {"published", "Published results", published_section(input)},
      {"comparisons", "Comparisons", table_section(comparisons_table(input))},
      {"breakdown", "Where models fail", breakdown_html(input)},
      {"pretraining", "Masked pretraining", table_section(pretraining_table(input.records))},
      {"claims", "Claims", table_section(claims_table(input))},
      {"tables", "Tables 2 to 5", paper_tables_section(input)},
      {"figures", "Figures", figures_html(input)},
      {"controls", "Controls",
       tables_section(
           {controls_table(input.options.analyses), reach_table(input.options.analyses)})},
      {"curves", "Learning curves", curves_section(input)},
      {"speed", "Speed and memory",
       tables_section({training_speed_table(input.board), measurement_table(input.board)})},
      {"protocols", "Protocols", tables_section({protocol_table(input.board)})},
      {"runs", "Runs", runs_html(input.records)},
      {"notes", "The paper's figures",
       input.board.rows.empty() ? "" : list_html(paper_notes(), "notes")},
  };
  std::erase_if(sections, [](const Section& section) { return section.body.empty(); });
  std::string page = head_html(clean(input.options.title)) + "<body>\n" +
                     header_html(input, sections) + "<main>\n";
  for (const Section& section : sections) {
    page += "<section id=\"" + section.id + "\">\n<h2>" + html(section.title) + "</h2>\n" +
            section.body + "</section>\n";
  }
  return page +
         "</main>\n<footer>Made by lra from run records alone. Nothing on this page was loaded\n"
         "from anywhere.</footer>\n<script>" +
         std::string(page_script()) + "</script>\n</body>\n</html>\n";
}

}  // namespace lra::report
