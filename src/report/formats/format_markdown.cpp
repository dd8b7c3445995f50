// GitHub-flavoured Markdown: pipe tables and lists.
#include "report/formats/formats.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

std::string cell_text(const TableCell& cell) {
  const std::string text = markdown(cell.text) + signs_of(cell.marks);
  if (cell.emphasis == Emphasis::kBest) return "**" + text + "**";
  return text;
}

template <typename Lines>
std::string list_text(const std::string& title, const Lines& lines) {
  if (lines.empty()) return "";
  std::string text = "## " + title + "\n\n";
  for (const auto& line : lines) text += "- " + markdown(line) + "\n";
  return text + "\n";
}

}  // namespace

std::string markdown_table(const Table& table) {
  std::string text = "|";
  for (const std::string& title : table.header) text += " " + markdown(title) + " |";
  text += "\n|";
  for (size_t i = 0; i < table.header.size(); ++i) {
    text += table.is_word(i) ? " --- |" : " ---: |";
  }
  text += "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const TableCell& cell : row) text += " " + cell_text(cell) + " |";
    text += "\n";
  }
  return text + "\n" + markdown(table.caption) + "\n";
}

std::string format_markdown(const ReportInput& input) {
  std::string text = "# " + markdown(input.options.title) + "\n\n";
  for (const Table& table : all_tables(input)) {
    text += "## " + markdown(table.title) + "\n\n" + markdown_table(table) + "\n";
  }
  text += list_text("Warnings", input.board.warnings);
  text += list_text("Left out", input.options.problems);
  if (input.board.rows.empty()) return text;
  return text + list_text("Notes on the paper's figures", paper_notes());
}

}  // namespace lra::report
