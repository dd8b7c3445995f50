// Text for people: sizes, durations, counts, tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lra {

std::string human_bytes(uint64_t bytes);     // "512 B", "1.2 GB" (powers of 1000)
std::string human_duration(double seconds);  // "1:02:33", "2:05", "0:07"; "?" if not finite
std::string thousands(int64_t value);        // "25,000"
std::string percent(double fraction, int decimals = 2);  // 0.6512 -> "65.12%"
std::string fixed(double value, int decimals);           // "3.14"

// `text` without control characters and with bytes that are not UTF-8 replaced by U+FFFD: fit for
// a terminal, which acts on escape sequences. Line ends become spaces.
std::string printable(std::string_view text);

// Columns that `text` takes on a terminal: combining marks 0, East Asian wide and emoji 2, else 1.
int display_width(std::string_view text);

// A plain table with aligned columns; numbers go to the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header);
  // Takes as many cells as the header has.
  void add_row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Header, rule, rows; two spaces between columns, no spaces at line ends; every cell printable().
  std::string text() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lra
