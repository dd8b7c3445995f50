// Aligned tables for a terminal or a log file. Escape sequences are written only on request, and
// only our own: every text is cleaned first.
#include <algorithm>

#include "base/text_format.h"
#include "report/formats/formats.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kDim = "\x1b[2m", kReset = "\x1b[0m";

std::string padded(const std::string& text, int width, bool left) {
  const int missing = std::max(0, width - display_width(text));
  const std::string space(static_cast<size_t>(missing), ' ');
  return left ? text + space : space + text;
}

std::string colored(const std::string& text, Emphasis emphasis, bool color) {
  const bool is_marked = emphasis == Emphasis::kBest || emphasis == Emphasis::kQuiet;
  if (!color || !is_marked) return text;
  return std::string(emphasis == Emphasis::kBest ? kBold : kDim) + text + std::string(kReset);
}

constexpr int kPageWidth = 100;
constexpr int kWidestCell = 40;  // longer texts are broken at spaces
constexpr int kGap = 2;

std::string wrapped(const std::string& text, const std::string& indent) {
  std::string out;
  for (const std::string& line : broken_lines(text, kPageWidth - display_width(indent))) {
    if (!line.empty()) out += indent + line + "\n";
  }
  return out;
}

std::vector<int> column_widths(const Table& table) {
  std::vector<int> widths;
  for (const std::string& title : table.header) widths.push_back(display_width(title));
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      for (const std::string& line : broken_lines(row[i].text, kWidestCell)) {
        widths[i] = std::max(widths[i], display_width(line));
      }
    }
  }
  return widths;
}

// Groups of columns that fit the page side by side, each led by the columns that name the row.
std::vector<std::vector<size_t>> pages_of(const Table& table, const std::vector<int>& widths) {
  std::vector<size_t> keys;
  int keys_width = -kGap;
  for (size_t i = 0; i < static_cast<size_t>(table.num_keys); ++i) {
    keys.push_back(i);
    keys_width += kGap + widths[i];
  }
  std::vector<std::vector<size_t>> pages = {keys};
  int width = keys_width;
  for (size_t i = keys.size(); i < widths.size(); ++i) {
    if (width + kGap + widths[i] > kPageWidth && pages.back().size() > keys.size()) {
      pages.push_back(keys);
      width = keys_width;
    }
    pages.back().push_back(i);
    width += kGap + widths[i];
  }
  return pages;
}

// One row of a page: as many lines as its longest cell has.
std::string row_text(const Table& table, const Cells& row, const std::vector<size_t>& page,
                     const std::vector<int>& widths, bool color) {
  std::vector<std::vector<std::string>> cells;
  size_t height = 0;
  for (const size_t i : page) {
    cells.push_back(broken_lines(row[i].text, kWidestCell));
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (size_t y = 0; y < height; ++y) {
    size_t end = page.size();
    while (end > 0 && (y >= cells[end - 1].size() || cells[end - 1][y].empty())) --end;
    for (size_t c = 0; c < end; ++c) {
      const bool left = table.is_word(page[c]);
      const std::string part = y < cells[c].size() ? cells[c][y] : "";
      // Nothing follows the last cell of a line, so words there need no padding.
      const bool is_last = c + 1 == end;
      text += (c ? std::string(kGap, ' ') : "") +
              colored(left && is_last ? part : padded(part, widths[page[c]], left),
                      row[page[c]].emphasis, color);
    }
    text += "\n";
  }
  return text;
}

void clean_texts(Table& table) {
  for (std::string& title : table.header) title = clean(title);
  for (auto& row : table.rows) {
    for (TableCell& cell : row) cell.text = clean(cell.text) + signs_of(cell.marks);
  }
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

std::string text_table(Table table, bool color) {
  clean_texts(table);
  const Cells header = quiet_cells(table.header);
  const std::vector<int> widths = column_widths(table);
  std::string text = colored(table.title, Emphasis::kBest, color) + "\n\n";
  for (const std::vector<size_t>& page : pages_of(table, widths)) {
    int total = -kGap;
    for (const size_t i : page) total += kGap + widths[i];
    text += row_text(table, header, page, widths, color);
    text += std::string(static_cast<size_t>(total), '-') + "\n";
    const auto is_empty = [&](const auto& row) {  // on this page, but for the names
      return std::all_of(page.begin() + table.num_keys, page.end(),
                         [&](size_t i) { return row[i].text.empty(); });
    };
    for (const auto& row : table.rows) {
      if (!is_empty(row)) text += row_text(table, row, page, widths, color);
    }
    text += "\n";
  }
  return text + wrapped(clean(table.caption), "") + "\n";
}

std::string format_text(const ReportInput& input) {
  std::string text =
      colored(clean(input.options.title), Emphasis::kBest, input.options.color) + "\n\n";
  for (const Table& table : all_tables(input)) text += text_table(table, input.options.color);
  text += list_text("Warnings", input.board.warnings, input.options.color);
  text += list_text("Left out", input.options.problems, input.options.color);
  if (input.board.rows.empty()) return text;
  return text + list_text("Notes on the paper's figures", paper_notes(), input.options.color);
}

}  // namespace lra::report
