// A table as a picture, with the rules of booktabs. It needs no style sheet and no script.
#include <algorithm>

#include "base/text_format.h"
#include "report/formats/formats.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

constexpr int kTextLetter = 8, kRowHeight = 24, kSpace = 24,
              kBorder = 16;                             // pixels, of text of 14 pixels
constexpr int kCaptionLetter = 6, kCaptionHeight = 17;  // of the caption

std::vector<int> svg_widths(const Table& table) {
  std::vector<int> widths;
  for (const std::string& title : table.header) widths.push_back(display_width(clean(title)));
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(clean(row[i].shown())));
    }
  }
  for (int& width : widths) width *= kTextLetter;
  return widths;
}

std::string rule(int y, int width, const char* weight) {
  return filled("<path d=\"M{} {}H{}\" stroke=\"#000\" stroke-width=\"{}\"/>\n",
                {kBorder, y, width - kBorder, weight});
}

std::string text_at(int x, int y, const std::string& more, const std::string& text) {
  return filled("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", {x, y, more, html(text)});
}

std::string table_row_svg(const Table& table, const Cells& row, const std::vector<int>& widths,
                          int y) {
  std::string svg;
  int x = kBorder;
  for (size_t i = 0; i < row.size(); ++i) {
    const bool is_word = table.is_word(i);
    std::string more = is_word ? "" : " text-anchor=\"end\"";
    if (row[i].emphasis == Emphasis::kBest) more += " font-weight=\"bold\"";
    if (row[i].emphasis == Emphasis::kSecond) more += " text-decoration=\"underline\"";
    svg += text_at(is_word ? x : x + widths[i], y, more, row[i].shown());
    x += widths[i] + kSpace;
  }
  return svg;
}

}  // namespace

std::string svg_table(const Table& table) {
  const std::vector<int> widths = svg_widths(table);
  int width = 2 * kBorder - kSpace;
  for (const int column : widths) width += column + kSpace;
  width = std::max(width, 480);
  int y = kBorder;
  std::string svg = rule(y, width, "1.5") +
                    table_row_svg(table, table.header_cells(), widths, y + kRowHeight - 7);
  y += kRowHeight;
  svg += rule(y, width, "0.8");
  for (const auto& row : table.rows) {
    svg += table_row_svg(table, row, widths, y + kRowHeight - 7);
    y += kRowHeight;
  }
  svg += rule(y, width, "1.5");
  for (const std::string& line :
       broken_lines(clean(table.caption), (width - 2 * kBorder) / kCaptionLetter)) {
    y += kCaptionHeight;
    svg += text_at(kBorder, y, " font-size=\"12\"", line);
  }
  const int height = y + kBorder;
  return filled(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}" )"
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"14\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
      {width, height, width, height, svg});
}

}  // namespace lra::report
