#include "cli/terminal.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/text_format.h"
#include "report/formats/markup.h"

namespace lra::cli {
namespace {

constexpr int kGap = 2;          // between two columns of a TextTable
constexpr int kMinColumn = 16;   // a column that is broken is not made narrower
constexpr int kHelpWidth = 100;  // of help that goes into a file

// Widths of columns that fit: the widest gives way.
std::vector<int> fitted_widths(std::vector<int> widths, int width) {
  const int gaps = kGap * (static_cast<int>(widths.size()) - 1);
  while (std::accumulate(widths.begin(), widths.end(), gaps) > width) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kMinColumn) break;
    --*widest;
  }
  return widths;
}

std::string broken_text(const std::string& text, int width) {
  std::string broken;
  for (const std::string& line : report::broken_lines(text, width)) {
    broken += (broken.empty() ? "" : "\n") + line;
  }
  return broken;
}

class FittedHelp : public CLI::Formatter {
 public:
  explicit FittedHelp(int width) : width_(width) {}

  std::string make_option_desc(const CLI::Option* option) const override {
    return broken_text(CLI::Formatter::make_option_desc(option), right_column());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string next_line = "\n" + std::string(column_width_, ' ');
    std::string text = "  " + command->get_display_name(true);
    if (text.size() < column_width_) {
      text.resize(column_width_, ' ');
    } else {
      text += next_line;
    }
    for (const char c : broken_text(command->get_description(), right_column())) {
      text += c == '\n' ? next_line : std::string(1, c);
    }
    return text + "\n";
  }

 private:
  int right_column() const {
    return std::max(kMinColumn, width_ - static_cast<int>(column_width_));
  }

  int width_;
};

}  // namespace

winsize window_size(int fd) {
  winsize size{};
  const bool is_known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 2 && size.ws_row > 2;
  return is_known ? size : winsize{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
}

int terminal_width() {
  if (::isatty(STDOUT_FILENO)) return window_size(STDOUT_FILENO).ws_col;
  const char* columns = std::getenv("COLUMNS");
  return columns ? std::clamp(std::atoi(columns), 0, 10000) : 0;
}

bool shows_color() {
  const char* off = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal && std::string_view(terminal) == "dumb";
  return ::isatty(STDOUT_FILENO) && !(off && *off) && !is_dumb;
}

bool shows_utf8() {
  if (!::isatty(STDOUT_FILENO)) return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* locale = std::getenv(name);
    if (!locale || !*locale) continue;
    const std::string_view text = locale;
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
  }
  return false;
}

std::string fitted_table(const std::vector<std::string>& header,
                         const std::vector<std::vector<std::string>>& rows, int width) {
  std::vector<int> widths;
  for (const std::string& title : header) widths.push_back(display_width(title));
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  if (width > 0) widths = fitted_widths(std::move(widths), width);
  TextTable table(header);
  for (const auto& row : rows) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (size_t i = 0; i < row.size(); ++i) {
      cells.push_back(report::broken_lines(row[i], widths[i]));
      height = std::max(height, cells.back().size());
    }
    for (size_t y = 0; y < height; ++y) {
      std::vector<std::string> line;
      for (const auto& cell : cells) line.push_back(y < cell.size() ? cell[y] : "");
      table.add_row(line);
    }
  }
  return table.text();
}

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  const int width = terminal_width();
  return std::make_shared<FittedHelp>(width > 0 ? width : kHelpWidth);
}

}  // namespace lra::cli
