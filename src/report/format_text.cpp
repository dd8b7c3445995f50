// Aligned tables for a terminal or a log file. Escape sequences are written only when asked for,
// and then only ours: every text is cleaned first.
#include <algorithm>

#include "base/text_format.h"
#include "report/formats.h"
#include "report/markup.h"
#include "report/tables.h"

namespace lra::report {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kDim = "\x1b[2m", kReset = "\x1b[0m";

std::string padded(const std::string& text, int width, bool left) {
  const int missing = std::max(0, width - display_width(text));
  const std::string space(static_cast<size_t>(missing), ' ');
  return left ? text + space : space + text;
}

std::string colored(const std::string& text, Emphasis emphasis, bool color) {
  if (!color || emphasis == Emphasis::kPlain) return text;
  return std::string(emphasis == Emphasis::kBest ? kBold : kDim) + text + std::string(kReset);
}

std::vector<int> column_widths(const Table& table) {
  std::vector<int> widths;
  for (const std::string& title : table.header) widths.push_back(display_width(title));
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i].text));
    }
  }
  return widths;
}

std::string line_text(const Table& table, const std::vector<TableCell>& row,
                      const std::vector<int>& widths, bool color) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    const bool left = static_cast<int>(i) < table.num_left;
    // Nothing follows the last column, so words there need no padding.
    const bool is_last = i + 1 == row.size();
    const std::string text = left && is_last ? row[i].text : padded(row[i].text, widths[i], left);
    line += (i ? "  " : "") + colored(text, row[i].emphasis, color);
  }
  return line + "\n";
}

// Text in lines of at most 100 columns.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::string out, line;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && display_width(indent + line + " " + word) > 100) {
      out += indent + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return out + (line.empty() ? "" : indent + line + "\n");
}

std::string table_text(Table table, bool color) {
  std::vector<TableCell> header;
  for (std::string& title : table.header) {
    title = clean(title);
    header.push_back({title, Emphasis::kQuiet});
  }
  for (auto& row : table.rows) {
    for (TableCell& cell : row) cell.text = clean(cell.text);
  }
  const std::vector<int> widths = column_widths(table);
  size_t total = 2 * (widths.size() - 1);
  for (const int width : widths) total += static_cast<size_t>(width);
  std::string text = colored(table.title, Emphasis::kBest, color) + "\n\n";
  text += line_text(table, header, widths, color);
  text += std::string(total, '-') + "\n";
  for (const auto& row : table.rows) text += line_text(table, row, widths, color);
  return text + "\n" + wrapped(clean(table.caption), "") + "\n";
}

template <typename Lines>
std::string list_text(const std::string& title, const Lines& lines, bool color) {
  if (lines.empty()) return "";
  std::string text = colored(title, Emphasis::kBest, color) + "\n\n";
  for (const auto& line : lines) {
    std::string item = wrapped(clean(line), "  ");
    item[0] = '-';
    text += item;
  }
  return text + "\n";
}

}  // namespace

std::string format_text(const ReportInput& input) {
  std::string text = colored(clean(input.title), Emphasis::kBest, input.color) + "\n\n";
  for (const Table& table : report_tables(input.board)) text += table_text(table, input.color);
  text += list_text("Warnings", input.board.warnings, input.color);
  text += list_text("Left out", input.problems, input.color);
  return text + list_text("Notes on the paper's figures", paper_notes(), input.color);
}

}  // namespace lra::report
