#include "cli/live_lines.h"

#include <sys/ioctl.h>

#include <span>

#include "base/clock.h"
#include "base/text_format.h"
#include "cli/run_pace.h"
#include "io/atomic_file.h"

namespace lra::cli {
namespace {

constexpr double kInterval = 0.25;  // seconds between two redraws

// Columns and rows, both at least 2.
winsize size_of(int fd) {
  winsize size{};
  const bool is_known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 2 && size.ws_row > 2;
  return is_known ? size : winsize{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
}

}  // namespace

LiveLines::LiveLines(ProgressTarget target) : target_(std::move(target)) {}

LiveLines::~LiveLines() {
  lines_.clear();
  draw("");
}

void LiveLines::add(size_t id, const std::string& name, const std::string& log, int64_t steps) {
  const auto before = last_pace(log);
  lines_[id] = {.name = name,
                .log = log,
                .steps = steps,
                .initial = before ? before->step : 0,
                .started = monotonic_seconds()};
  draw("");
}

void LiveLines::remove(size_t id) { lines_.erase(id); }

void LiveLines::print(const std::string& text) { draw(text + "\n"); }

void LiveLines::update() {
  if (monotonic_seconds() >= next_draw_) draw("");
}

std::string LiveLines::text_of(const Line& line) const {
  const auto pace = last_pace(line.log);
  const std::string postfix =
      pace ? "loss=" + fixed(pace->loss, 3) + ", acc=" + fixed(pace->accuracy, 3) + ", " +
                 thousands(static_cast<int64_t>(pace->tokens_per_s)) + " tok/s"
           : std::string();
  const ProgressState state{.description = line.name,
                            .unit = "step",
                            .postfix = postfix,
                            .count = pace ? pace->step : line.initial,
                            .total = line.steps,
                            .initial = line.initial,
                            .elapsed_s = monotonic_seconds() - line.started};
  const int columns = target_.columns > 0 ? target_.columns : size_of(target_.fd).ws_col;
  return progress_line(state, columns - 1, target_.fill);  // the last column would wrap
}

void LiveLines::draw(const std::string& above) {
  if (!is_on()) {
    if (!above.empty()) write_all(target_.fd, std::as_bytes(std::span(above)));
    return;
  }
  std::string text = num_drawn_ > 0 ? "\x1b[" + std::to_string(num_drawn_) + "A\r\x1b[J" : "";
  text += above;
  num_drawn_ = 0;
  const size_t most = size_of(target_.fd).ws_row - 1;
  for (const auto& [id, line] : lines_) {
    if (num_drawn_ == most) break;
    text += text_of(line) + "\n";
    ++num_drawn_;
  }
  write_all(target_.fd, std::as_bytes(std::span(text)));
  next_draw_ = monotonic_seconds() + kInterval;
}

}  // namespace lra::cli
