// The look of the bar: fill symbols, environment variables, and one line of it.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text_format.h"
#include "base/utf8.h"
#include "io/progress.h"

namespace lra {
namespace {

constexpr int kBarColumns = 10;  // of a line without a width, as in tqdm
constexpr int kLeastBarColumns = 5;

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

// The number in an environment variable; throws for a value that is not a number, the user's
// mistake.
double number_variable(const char* name, double otherwise) {
  const char* text = environment(name);
  if (!text) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (*end != '\0' || !(value >= 0 && value <= 1e6)) {
    throw Error(
        {.where = name, .what = std::string("is '") + text + "'", .expected = "a number >= 0"});
  }
  return value;
}

bool is_false(std::string_view text) { return text == "0" || text == "false" || text == "False"; }
bool is_true(std::string_view text) { return text == "1" || text == "true" || text == "True"; }

// The characters of a UTF-8 text, one string each.
std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> list;
  for (const char c : text) {
    if (begins_character(static_cast<uint8_t>(c)) || list.empty()) {
      list.emplace_back(1, c);
    } else {
      list.back() += c;
    }
  }
  return list;
}

// tqdm's spelling of 00:12 and 1:02:03.
std::string interval_text(double seconds) {
  const std::string text = human_duration(std::clamp(seconds, 0.0, 1e15));
  return text.size() == 4 ? "0" + text : text;
}

// Three digits and a unit: 9.99, 12.3k, 456M.
std::string scaled(double value) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E", "Z"};
  for (const char* unit : kUnits) {
    if (std::abs(value) < 999.5) {
      const int decimals = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
      return fixed(value, decimals) + unit;
    }
    value /= 1000;
  }
  return fixed(value, 1) + "Y";
}

std::string padded(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string count_text(int64_t count, bool scale) {
  return scale ? scaled(static_cast<double>(count)) : std::to_string(count);
}

// "36.21it/s", or "2.50s/it" when one takes longer than a second.
std::string rate_text(const ProgressState& state, double rate) {
  const std::string unit(state.unit);
  if (rate <= 0) return "?" + unit + "/s";
  const double shown = rate < 1 ? 1 / rate : rate;
  const std::string number = state.unit_scale ? scaled(shown) : padded(fixed(shown, 2), 5);
  return number + (rate < 1 ? "s/" + unit : unit + "/s");
}

std::string bar_text(double fraction, int columns, const std::vector<std::string>& fill) {
  const int steps = static_cast<int>(fill.size()) - 1;  // of one cell
  const int filled = static_cast<int>(fraction * columns * steps);
  const int whole = filled / steps;
  std::string bar;
  for (int i = 0; i < columns; ++i) {
    bar += i < whole ? fill.back() : i == whole ? fill[filled % steps] : fill[0];
  }
  return bar;
}

// `postfix`, ", a=1, b=2", without the last of its items that do not fit; `columns` 0: all of it.
std::string fitting_postfix(std::string postfix, int columns, int room) {
  while (columns > 0 && !postfix.empty() && display_width(postfix) > room) {
    postfix.resize(postfix.rfind(", "));
  }
  return postfix;
}

// `text` cut to `columns`, when there is a width at all.
std::string cut(const std::string& text, int columns) {
  if (columns == 0 || display_width(text) <= columns) return text;
  std::string out;
  int width = 0;
  for (const std::string& c : characters(text)) {
    width += display_width(c);
    if (width > columns) break;
    out += c;
  }
  return out;
}

}  // namespace

std::vector<std::string> ProgressTarget::unicode_fill() { return characters(" ▏▎▍▌▋▊▉█"); }

std::vector<std::string> ProgressTarget::ascii_fill() { return characters(" 123456789#"); }

ProgressTarget ProgressTarget::standard_error() {
  ProgressTarget target;
  target.terminal = ::isatty(target.fd) == 1;
  const char* disable = environment("TQDM_DISABLE");
  target.disabled = disable && !is_false(disable);
  target.columns = static_cast<int>(number_variable("TQDM_NCOLS", 0));
  target.min_interval_s = number_variable("TQDM_MININTERVAL", target.min_interval_s);
  const char* ascii = environment("TQDM_ASCII");
  if (ascii && is_true(ascii)) {
    target.fill = ascii_fill();
  } else if (ascii && !is_false(ascii)) {
    target.fill = characters(printable(ascii));
    if (target.fill.size() < 2) target.fill = ascii_fill();
  }
  return target;
}

std::string progress_line(const ProgressState& state, int columns,
                          const std::vector<std::string>& fill) {
  const double rate = state.rate > 0 ? state.rate
                      : state.elapsed_s > 0
                          ? static_cast<double>(state.count - state.initial) / state.elapsed_s
                          : 0;
  const std::string head = state.description.empty() ? "" : std::string(state.description) + ": ";
  const auto end_of = [&](int room) {
    const std::string all = state.postfix.empty() ? "" : ", " + std::string(state.postfix);
    return fitting_postfix(all, columns, room) + "]";
  };
  const std::string done = count_text(state.count, state.unit_scale);
  const std::string elapsed = interval_text(state.elapsed_s);
  // More than was announced: the announcement was wrong, so no bar.
  if (state.total <= 0 || state.count > state.total) {
    const std::string line =
        head + done + std::string(state.unit) + " [" + elapsed + ", " + rate_text(state, rate);
    return cut(line + end_of(columns - display_width(line) - 1), columns);
  }
  const double fraction = static_cast<double>(state.count) / static_cast<double>(state.total);
  const double left = static_cast<double>(state.total - state.count);
  const std::string remaining = rate > 0 ? interval_text(left / rate) : "?";
  const std::string before = head + padded(fixed(100 * fraction, 0), 3) + "%|";
  std::string after = "| " + done + "/" + count_text(state.total, state.unit_scale) + " [" +
                      elapsed + "<" + remaining + ", " + rate_text(state, rate);
  after += end_of(columns - display_width(before) - display_width(after) - kLeastBarColumns - 1);
  const int used = display_width(before) + display_width(after);
  const int bar = columns == 0 ? kBarColumns : std::max(1, columns - used);
  return cut(before + bar_text(fraction, bar, fill) + after, columns);
}

}  // namespace lra
