// Text that fits the terminal.
#pragma once

#include <sys/ioctl.h>

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class FormatterBase;
}

namespace lra::cli {

// Columns and rows of a terminal, at least 3 each; 80 and 24 if it does not tell.
winsize window_size(int fd);

// Columns of the terminal that standard output is, else those of the variable COLUMNS, else 0.
int terminal_width();

// True if standard output is a terminal with colors that the user has not switched off (NO_COLOR,
// TERM=dumb); and if it is one that shows UTF-8, by its locale.
bool shows_color();
bool shows_utf8();

// A table as TextTable makes it, with cells broken at spaces so that it is at most `width` columns
// wide where that is possible; 0: any width. Rows have as many cells as the header.
std::string fitted_table(const std::vector<std::string>& header,
                         const std::vector<std::vector<std::string>>& rows, int width);

// Help whose descriptions are broken at the terminal's width.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace lra::cli
