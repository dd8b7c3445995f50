#include "report/formats/html_parts.h"
#include "report/formats/markup.h"

namespace lra::report {

std::string column_header(const std::string& title, bool word, const std::string& more_classes) {
  std::string classes = word ? "word" : "";
  if (!more_classes.empty()) classes += (classes.empty() ? "" : " ") + more_classes;
  const std::string attribute = classes.empty() ? "" : " class=\"" + classes + "\"";
  return "<th" + attribute + " scope=\"col\" aria-sort=\"none\"><button type=\"button\">" +
         html(title) + "</button></th>";
}

std::string marks_html(const Marks& marks) {
  std::string text;
  for (const Mark& mark : marks) {
    text += "<abbr class=\"mark\" title=\"" + html(text_of(mark)) + "\">" + signs_of({mark}) +
            "</abbr>";
  }
  return text;
}

std::string table_html(const Table& table) {
  if (table.rows.empty()) return "";
  return "<h3>" + html(table.title) + "</h3>\n<p class=\"caption\">" + html(table.caption) +
         "</p>\n" + bare_table_html(table);
}

std::string bare_table_html(const Table& table) {
  std::string text = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                     html(table.title) + "\"><table" + (table.is_list ? " class=\"cards\"" : "") +
                     ">\n<thead><tr>";
  for (size_t i = 0; i < table.header.size(); ++i) {
    text += column_header(table.header[i], table.is_word(i));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const bool is_long = row[i].text.size() > 64;  // wraps; anything shorter stays on one line
      std::string kind =
          table.is_word(i) ? (is_long ? "word long" : "word") : (is_long ? "long" : "");
      if (row[i].emphasis == Emphasis::kQuiet) kind += " quiet";
      if (row[i].emphasis == Emphasis::kBest) kind += " best";
      const std::string name = table.is_list ? " data-name=\"" + html(table.header[i]) + "\"" : "";
      text += "<td class=\"" + kind + "\"" + name + ">" +
              (row[i].marks.empty()
                   ? html(row[i].text)
                   : "<span>" + html(row[i].text) + marks_html(row[i].marks) + "</span>") +
              "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace lra::report
