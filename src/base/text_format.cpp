#include "base/text_format.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/quoted.h"
#include "base/utf8.h"

namespace lra {
namespace {

struct Character {
  std::string_view bytes;
  char32_t code = 0;  // kNone for a byte that is not UTF-8
};
constexpr char32_t kNone = 0xFFFFFFFF;

// Takes one character off the front of `text`; invalid UTF-8 one byte at a time.
Character take_character(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const bool is_valid = size <= text.size() && is_utf8(text.substr(0, size));
  Character taken{text.substr(0, is_valid ? size : 1), kNone};
  text.remove_prefix(taken.bytes.size());
  if (!is_valid) return taken;
  taken.code = size == 1 ? lead : lead & (0xFF >> (size + 1));
  for (const char c : taken.bytes.substr(1)) taken.code = taken.code << 6 | (c & 0x3F);
  return taken;
}

bool in(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

// C0 and C1 controls, and the marks that change the direction of the text that follows.
bool is_control(char32_t c) {
  return c < 0x20 || in(c, 0x7F, 0x9F) || in(c, 0x200E, 0x200F) || in(c, 0x202A, 0x202E) ||
         in(c, 0x2066, 0x2069);
}

// Takes part in a text without being seen in it.
bool is_invisible(char32_t c) {
  return is_control(c) || c == 0xA0 || c == 0xAD || in(c, 0x200B, 0x200D) ||
         in(c, 0x2028, 0x2029) || c == 0x2060 || c == 0xFEFF;
}

// "\\t", "\\x1b" or "\\ufeff".
std::string escaped(char32_t c) {
  if (c == '\t') return "\\t";
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, c < 0x100 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(c));
  return buffer;
}

int character_width(char32_t c) {
  if (is_control(c) || in(c, 0x300, 0x36F) || in(c, 0x200B, 0x200D) || in(c, 0x20D0, 0x20FF) ||
      in(c, 0xFE00, 0xFE0F) || c == 0xFEFF) {
    return 0;
  }
  const bool wide = in(c, 0x1100, 0x115F) || in(c, 0x2E80, 0x303E) || in(c, 0x3041, 0xA4CF) ||
                    in(c, 0xAC00, 0xD7A3) || in(c, 0xF900, 0xFAFF) || in(c, 0xFE30, 0xFE6F) ||
                    in(c, 0xFF00, 0xFF60) || in(c, 0xFFE0, 0xFFE6) || in(c, 0x1F300, 0x1F64F) ||
                    in(c, 0x1F680, 0x1F6FF) || in(c, 0x1F900, 0x1FAFF) || in(c, 0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

// "12", "-3.5", "1,024", "65.1%", "0.65 ± 0.01", "-": texts that are aligned to the right of a
// column.
bool looks_numeric(const std::string& text) {
  if (text.empty()) return true;
  const size_t sign = text[0] == '-' || text[0] == '+' ? 1 : 0;
  return sign == text.size() || std::isdigit(static_cast<unsigned char>(text[sign]));
}

void append_cell(std::string& line, const std::string& cell, int width, bool right) {
  const std::string space(static_cast<size_t>(width - display_width(cell)), ' ');
  line += right ? space + cell : cell + space;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string fixed(double value, int decimals) {
  char buffer[400];  // the largest double has 309 digits
  const int length =
      std::snprintf(buffer, sizeof buffer, "%.*f", std::clamp(decimals, 0, 20), value);
  return {buffer, static_cast<size_t>(length)};
}

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  int unit = 0;
  // 999.95 would be shown as 1000.0.
  for (; value >= 999.95 && unit < 5; ++unit) value /= 1000;
  return fixed(value, 1) + " " + kUnits[unit];
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds) || std::abs(seconds) > 1e15) return "?";
  const auto whole = static_cast<int64_t>(std::abs(seconds));
  const auto two = [](int64_t v) { return std::string(v < 10 ? "0" : "") + std::to_string(v); };
  std::string text = seconds <= -1 ? "-" : "";
  if (whole >= 3600) {
    text += std::to_string(whole / 3600) + ":" + two(whole / 60 % 60);
  } else {
    text += std::to_string(whole / 60);
  }
  return text + ":" + two(whole % 60);
}

std::string thousands(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

std::string percent(double fraction, int decimals) {
  return std::isfinite(fraction) ? fixed(fraction * 100, decimals) + "%" : "?";
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = take_character(text);
    if (c.code == '\n' || c.code == '\r' || c.code == '\t') {
      out += ' ';
    } else if (!is_control(c.code)) {
      out += c.code == kNone ? "\uFFFD" : c.bytes;
    }
  }
  return out;
}

std::string in_quotes(std::string_view text, int most) {
  std::string out = "'";
  for (int count = 0; !text.empty(); ++count) {
    if (count == most) return out + "...'";
    const Character c = take_character(text);
    if (c.code == kNone) {
      out += escaped(static_cast<unsigned char>(c.bytes[0]));
    } else {
      out += is_invisible(c.code) ? escaped(c.code) : std::string(c.bytes);
    }
  }
  return out + "'";
}

std::string quoted_list(const std::vector<std::string>& names, size_t most) {
  if (names.empty()) return "nothing";
  std::string out;
  const size_t shown = names.size() > most + 1 ? most : names.size();
  for (size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == names.size();
    out += (i == 0 ? "" : is_last ? " and " : ", ") + in_quotes(names[i], 60);
  }
  return shown == names.size() ? out
                               : out + " and " + std::to_string(names.size() - shown) + " more";
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) width += character_width(take_character(text).code);
  return width;
}

TextTable::TextTable(std::vector<std::string> header) : header_(std::move(header)) {
  for (std::string& cell : header_) cell = printable(cell);
}

void TextTable::add_row(std::vector<std::string> cells) {
  LRA_CHECK_EQ(cells.size(), header_.size());
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::string header, rule, body;
  std::vector<int> widths;
  std::vector<bool> right;
  for (size_t c = 0; c < header_.size(); ++c) {
    int width = display_width(header_[c]);
    bool numeric = !rows_.empty();
    for (const auto& row : rows_) {
      width = std::max(width, display_width(row[c]));
      numeric = numeric && looks_numeric(row[c]);
    }
    widths.push_back(width);
    right.push_back(numeric);
    const std::string gap = c ? "  " : "";
    append_cell(header += gap, header_[c], width, numeric);
    rule += gap + std::string(static_cast<size_t>(width), '-');
  }
  for (const auto& row : rows_) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      append_cell(line += c ? "  " : "", row[c], widths[c], right[c]);
    }
    body += trimmed(std::move(line));
  }
  return trimmed(std::move(header)) + trimmed(std::move(rule)) + body;
}

}  // namespace lra
