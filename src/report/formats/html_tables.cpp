#include <span>

#include "report/formats/html_parts.h"
#include "report/formats/markup.h"

namespace lra::report {
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

// Some rows of the table, under its header.
std::string rows_html(const Table& table, std::span<const std::vector<TableCell>> rows) {
  std::string text = filled(R"(<div class="scroll" tabindex="0" role="region" aria-label="{}">)"
                            "<table{}>\n<thead><tr>",
                            {html(table.title), table.is_list ? " class=\"cards\"" : ""});
  for (size_t i = 0; i < table.header.size(); ++i) {
    text += column_header(table.header[i], table.is_word(i) ? "word" : "");
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) text += cell_html(table, row[i], i);
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace

std::string column_header(const std::string& title, const std::string& classes) {
  return filled(R"(<th{} scope="col" aria-sort="none"><button type="button">{}</button></th>)",
                {classes.empty() ? "" : " class=\"" + classes + "\"", html(title)});
}

std::string marks_html(const Marks& marks) {
  return concatenated(marks, [](const Mark& mark) {
    return filled(R"(<abbr class="mark" title="{}">{}</abbr>)",
                  {html(text_of(mark)), meaning_of(mark).word});
  });
}

std::string caption_html(const std::string& text) {
  return "<p class=\"caption\">" + html(text) + "</p>\n";
}

std::string folded_html(const char* attributes, size_t count, const std::string& what,
                        const std::string& content) {
  return filled("<details {}><summary><b>{}</b> {}</summary>\n{}</details>\n",
                {attributes, count, what, content});
}

std::string table_html(const Table& table) {
  if (table.rows.empty()) return "";
  return "<h3>" + html(table.title) + "</h3>\n" + untitled_table_html(table);
}

std::string untitled_table_html(const Table& table) {
  return table.rows.empty() ? "" : caption_html(table.caption) + bare_table_html(table);
}

std::string bare_table_html(Table table) {
  drop_empty_columns(table);
  const std::span rows(table.rows);
  const size_t shown = rows.size() - table.num_folded;
  const std::string text = shown > 0 ? rows_html(table, rows.first(shown)) : "";
  if (table.num_folded == 0) return text;
  return text + folded_html("class=\"more-rows\"", table.num_folded, html(table.folded),
                            rows_html(table, rows.subspan(shown)));
}

}  // namespace lra::report
