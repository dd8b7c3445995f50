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

std::string count_text(size_t count, const std::string& noun) {
  return "<b>" + std::to_string(count) + "</b> " + noun + (count == 1 ? "" : "s");
}

std::string header_html(const ReportInput& input, const std::vector<Section>& sections) {
  std::set<std::string> models;
  std::string latest;
  size_t trained = 0;
  for (const RunRecord& record : input.records) {
    models.insert(record.model);
    trained += record.kind == "train";
    latest = std::max(latest, record.provenance.finished_utc);
  }
  const std::string links = concatenated(sections, [](const Section& section) {
    return filled("<a href=\"#{}\">{}</a>", {section.id, html(section.title)});
  });
  return filled(
      "<header>\n<h1>{}</h1>\n<p class=\"facts\">{}, {}, {}, {}{}</p>\n"
      "<nav aria-label=\"Sections\">{}</nav>\n{}</header>\n",
      {html(input.options.title), count_text(trained, "run"),
       count_text(input.records.size() - trained, "measurement"),
       count_text(models.size(), "model"),
       count_text(input.board.columns.size() + input.own.columns.size(), "task"),
       latest.empty() ? "" : ", the latest finished " + html(latest.substr(0, 10)), links, kTools});
}

template <typename Lines>
std::string list_html(const Lines& lines) {
  return "<ul class=\"notes\">\n" +
         concatenated(lines, [](const auto& line) { return "<li>" + html(line) + "</li>\n"; }) +
         "</ul>\n";
}

std::string folded_list_html(const std::vector<std::string>& lines, const char* one,
                             const char* several) {
  if (lines.empty()) return "";
  return folded_html("class=\"fold\"", lines.size(), lines.size() == 1 ? one : several,
                     list_html(lines));
}

std::string board_section(const ReportInput& input) {
  const std::string warnings =
      folded_list_html(input.board.warnings, "warning", "warnings") +
      folded_list_html(input.options.problems, "file left out", "files left out");
  return leaderboard_html(input) + table_html(best_table(input.board)) + warnings +
         quality_and_speed_html(input);
}

// Published results of the field, one click away.
std::string published_section(const ReportInput& input) {
  if (input.options.literature.results.empty() || input.board.rows.empty()) return "";
  const Table table = literature_table(input.options.literature);
  return folded_html(
      input.options.show_literature ? "class=\"more-rows\" open" : "class=\"more-rows\"",
      table.rows.size(),
      "published results, not ranked with the runs: protocols, sizes and seeds differ",
      untitled_table_html(table));
}

std::string tables_section(const std::vector<Table>& tables) {
  return concatenated(tables, table_html);
}

std::string paper_tables_section(const ReportInput& input) {
  return tables_section(efficiency_tables(input, "train")) +
         tables_section({generalization_table(input.options.analyses)}) +
         tables_section(efficiency_tables(input, "infer")) +
         tables_section({convergence_table(input.options.analyses)}) + missing_tables_html(input);
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
      {"own-data", "Outside of the arena", untitled_table_html(own_data_table(input.own))},
      {"published", "Published results", published_section(input)},
      {"comparisons", "Comparisons", untitled_table_html(comparisons_table(input))},
      {"breakdown", "Where models fail", breakdown_html(input)},
      {"pretraining", "Masked pretraining", untitled_table_html(pretraining_table(input.records))},
      {"claims", "Claims", untitled_table_html(claims_table(input))},
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
      {"notes", "The paper's figures", input.board.rows.empty() ? "" : list_html(paper_notes())},
  };
  std::erase_if(sections, [](const Section& section) { return section.body.empty(); });
  const std::string bodies = concatenated(sections, [](const Section& section) {
    return filled("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n",
                  {section.id, html(section.title), section.body});
  });
  return head_html(clean(input.options.title)) + "<body>\n" + header_html(input, sections) +
         "<main>\n" + bodies +
         "</main>\n<footer>Made by lra from run records alone. Nothing on this page was loaded\n"
         "from anywhere.</footer>\n<script>" +
         std::string(page_script()) + "</script>\n</body>\n</html>\n";
}

}  // namespace lra::report
