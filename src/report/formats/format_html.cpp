// One self-contained page: no network, no foreign script. The Content-Security-Policy allows only
// our style sheet and our script, by their hashes, and embedded pictures, so even markup that got
// past the escapes could not run or load anything.
#include <set>

#include "report/formats/html_parts.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

std::string head_html(const std::string& title) {
  return filled(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
      "style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n",
      {csp_hash(page_style()), csp_hash(page_script()), html(title), std::string(page_style())});
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

std::string paper_tables_section(const ReportInput& input) {
  return concatenated(efficiency_tables(input, "train"), table_html) +
         table_html(generalization_table(input.options.analyses)) +
         concatenated(efficiency_tables(input, "infer"), table_html) +
         table_html(convergence_table(input.options.analyses)) + missing_tables_html(input);
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
       table_html(controls_table(input.options.analyses)) +
           table_html(reach_table(input.options.analyses))},
      {"curves", "Learning curves", curves_section(input)},
      {"speed", "Speed and memory",
       table_html(training_speed_table(input.board)) + table_html(measurement_table(input.board))},
      {"protocols", "Protocols", table_html(protocol_table(input.board))},
      {"runs", "Runs", runs_html(input.records)},
      {"notes", "The paper's figures", input.board.rows.empty() ? "" : list_html(paper_notes())},
  };
  std::erase_if(sections, [](const Section& section) { return section.body.empty(); });
  const std::string bodies = concatenated(sections, [](const Section& section) {
    return filled("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n",
                  {section.id, html(section.title), section.body});
  });
  return head_html(input.options.title) +
         filled(
             "<body>\n{}<main>\n{}</main>\n<footer>Made by lra from run records alone. Nothing on "
             "this page was loaded\nfrom "
             "anywhere.</footer>\n<script>{}</script>\n</body>\n</html>\n",
             {header_html(input, sections), bodies, std::string(page_script())});
}

}  // namespace lra::report
