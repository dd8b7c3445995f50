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
    text += "<abbr class=\"mark\" title=\"" + html(text_of(mark)) + "\">" +
            mark_meanings().at(static_cast<size_t>(mark.kind)).word + "</abbr>";
  }
  return text;
}

std::string table_html(const Table& table) {
  if (table.rows.empty()) return "";
  return "<h3>" + html(table.title) + "</h3>\n<p class=\"caption\">" + html(table.caption) +
         "</p>\n" + bare_table_html(table);
}

namespace {

std::string cell_html(const Table& table, const TableCell& cell, size_t column) {
  const bool is_long = cell.text.size() > 64;  // wraps; anything shorter stays on one line
  std::string kind = table.is_word(column) ? "word" : "";
  if (is_long) kind += " long";
  if (cell.emphasis == Emphasis::kQuiet) kind += " quiet";
  if (cell.emphasis == Emphasis::kBest) kind += " best";
  const std::string name = table.is_list ? " data-name=\"" + html(table.header[column]) + "\"" : "";
  const std::string text = html(cell.text);
  return "<td class=\"" + kind + "\"" + name + ">" +
         (cell.marks.empty() ? text : "<span>" + text + marks_html(cell.marks) + "</span>") +
         "</td>";
}

// The rows from `begin` to before `end`, under the header.
std::string rows_html(const Table& table, size_t begin, size_t end) {
  std::string text = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                     html(table.title) + "\"><table" + (table.is_list ? " class=\"cards\"" : "") +
                     ">\n<thead><tr>";
  for (size_t i = 0; i < table.header.size(); ++i) {
    text += column_header(table.header[i], table.is_word(i));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (size_t row = begin; row < end; ++row) {
    text += "<tr>";
    for (size_t i = 0; i < table.header.size(); ++i)
      text += cell_html(table, table.rows[row][i], i);
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace

std::string bare_table_html(Table table) {
  drop_empty_columns(table);
  const size_t shown = table.rows.size() - table.num_folded;
  std::string text = shown > 0 ? rows_html(table, 0, shown) : "";
  if (table.num_folded == 0) return text;
  return text + "<details class=\"more-rows\"><summary><b>" + std::to_string(table.num_folded) +
         "</b> " + html(table.folded) + "</summary>\n" +
         rows_html(table, shown, table.rows.size()) + "</details>\n";
}

}  // namespace lra::report
