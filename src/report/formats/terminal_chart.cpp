// Learning curves in a terminal.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text_format.h"
#include "report/formats/chart.h"
#include "report/formats/markup.h"

namespace lra::report {
namespace {

constexpr int kColumns = 46, kLeastRows = 14, kLabelColumns = 24;
constexpr int kDotsAcross = 2, kDotsDown = 4;  // of a braille character
// Green, blue, magenta, cyan, yellow, red: bright on dark and on light.
constexpr std::array kColors = {"32", "34", "35", "36", "33", "31"};

struct Window {
  double low = 100, high = 0, last = 1;  // percent, percent, steps

  // The one of so many rows, from the top, that a value is nearest to.
  int row_of(double value, int rows) const {
    return static_cast<int>(std::lround((rows - 1) * ((high - value) / (high - low))));
  }
};

double percent_of(const Evaluation& point) { return 100 * point.accuracy; }

Window window_of(const std::vector<Curve>& curves) {
  Window window;
  for (const Curve& curve : curves) {
    for (const Evaluation& point : curve.points) {
      window.low = std::min(window.low, std::floor(percent_of(point)));
      window.high = std::max(window.high, std::ceil(percent_of(point)));
      window.last = std::max(window.last, static_cast<double>(point.step));
    }
  }
  window.high = std::max(window.high, window.low + 1);
  return window;
}

// Between two validations on the line between them; nothing before the first and after the last.
std::optional<double> value_at(const std::vector<Evaluation>& points, double step) {
  const auto after = std::ranges::find_if(
      points, [&](const Evaluation& point) { return static_cast<double>(point.step) >= step; });
  if (after == points.end()) return std::nullopt;
  if (static_cast<double>(after->step) == step) return percent_of(*after);
  if (after == points.begin()) return std::nullopt;
  const Evaluation& before = *(after - 1);
  const double part =
      (step - static_cast<double>(before.step)) / static_cast<double>(after->step - before.step);
  return percent_of(before) + part * (percent_of(*after) - percent_of(before));
}

// Dots, of which each character has several, and the curve that drew last in each character.
class Canvas {
 public:
  Canvas(int rows, const TerminalLook& look)
      : rows_(rows),
        look_(look),
        dots_(static_cast<size_t>(rows * kColumns)),
        curves_(static_cast<size_t>(rows * kColumns), -1) {}

  void draw(const Curve& curve, int index, const Window& window) {
    const int across = kColumns * kDotsAcross, down = rows_ * kDotsDown;
    std::optional<int> before;
    for (int x = 0; x < across; ++x) {
      const auto value = value_at(curve.points, window.last * (x + 1) / across);
      if (!value) continue;
      const int y = window.row_of(*value, down);
      // A steep part has no gaps.
      for (int dot = std::min(y, before.value_or(y)); dot <= std::max(y, before.value_or(y)); ++dot)
        set(x, dot, index);
      before = y;
    }
  }

  std::string row_text(int row) const {
    std::string text;
    for (int column = 0; column < kColumns; ++column) {
      const size_t cell = static_cast<size_t>(row * kColumns + column);
      text += curves_[cell] < 0 ? " " : colored(symbol(cell), curves_[cell]);
    }
    return text;
  }

  std::string colored(const std::string& text, int curve) const {
    if (!look_.color) return text;
    return std::string("\x1b[") + kColors[static_cast<size_t>(curve) % kColors.size()] + "m" +
           text + "\x1b[0m";
  }

 private:
  void set(int x, int y, int curve) {
    constexpr uint8_t kBits[kDotsDown][kDotsAcross] = {
        {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const size_t cell = static_cast<size_t>(y / kDotsDown * kColumns + x / kDotsAcross);
    if (curves_[cell] != curve) dots_[cell] = 0;
    curves_[cell] = curve;
    dots_[cell] |= kBits[y % kDotsDown][x % kDotsAcross];
  }
  // U+2800 with the dots as its low bits, or the letter of the curve.
  std::string symbol(size_t cell) const {
    if (!look_.braille) return std::string(1, static_cast<char>('A' + curves_[cell] % 26));
    const uint8_t dots = dots_[cell];
    return {'\xe2', static_cast<char>(0xa0 | dots >> 6), static_cast<char>(0x80 | (dots & 0x3f))};
  }

  int rows_;
  TerminalLook look_;
  std::vector<uint8_t> dots_;
  std::vector<int> curves_;
};

// The row of each label: that of the curve's end, or the next free one.
std::vector<int> label_rows(const std::vector<Curve>& curves, int rows, const Window& window) {
  std::vector<int> found;
  int next = 0;
  for (const Curve& curve : curves) {
    found.push_back(std::max(next, window.row_of(percent_of(curve.points.back()), rows)));
    next = found.back() + 1;
  }
  for (int limit = rows - 1, i = static_cast<int>(found.size()) - 1; i >= 0; --i, --limit) {
    auto& row = found[static_cast<size_t>(i)];
    row = std::min(row, limit);
    limit = row;
  }
  return found;
}

std::string label_of(const Curve& curve, size_t index, const TerminalLook& look) {
  const std::string letter =
      look.braille ? "" : std::string(1, static_cast<char>('A' + index % 26)) + " ";
  const std::string accuracy = " " + fixed(percent_of(curve.points.back()), 1);
  std::string name = clean(curve.name);
  const auto room = static_cast<size_t>(kLabelColumns) - letter.size() - accuracy.size();
  if (name.size() > room) name = clean(name.substr(0, room - 2)) + "..";
  return letter + name + accuracy;
}

std::string axis_label(int row, int rows, const Window& window) {
  const bool is_labeled = row == 0 || row == rows - 1;
  const std::string label = is_labeled ? fixed(row == 0 ? window.high : window.low, 0) + " %" : "";
  return std::string(6 - std::min<size_t>(6, label.size()), ' ') + label + " |";
}

}  // namespace

std::string terminal_chart(std::vector<Curve> curves, const TerminalLook& look) {
  std::ranges::stable_sort(curves, std::greater<>(),
                           [](const Curve& curve) { return curve.points.back().accuracy; });
  const Window window = window_of(curves);
  const int rows = std::max(kLeastRows, static_cast<int>(curves.size()));
  Canvas canvas(rows, look);
  for (size_t i = curves.size(); i-- > 0;) canvas.draw(curves[i], static_cast<int>(i), window);
  const std::vector<int> labels = label_rows(curves, rows, window);
  std::string text;
  for (int row = 0; row < rows; ++row) {
    std::string line = axis_label(row, rows, window) + canvas.row_text(row);
    const auto found = std::ranges::find(labels, row);
    if (found != labels.end()) {
      const auto i = static_cast<size_t>(found - labels.begin());
      line += " " + canvas.colored(label_of(curves[i], i, look), static_cast<int>(i));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string steps = thousands(std::llround(window.last)) + " steps";
  return text + std::string(7, ' ') + "+" + std::string(kColumns, '-') + "\n" +
         std::string(8 + kColumns - std::min<size_t>(kColumns, steps.size()), ' ') + steps + "\n\n";
}

}  // namespace lra::report
