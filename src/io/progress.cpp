#include "io/progress.h"

#include <sys/ioctl.h>
#include <time.h>

#include <algorithm>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/text_format.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

constexpr double kPlainInterval = 10;  // seconds between lines that go to no terminal
constexpr double kSmoothing = 0.3;     // weight of the newest rate, as in tqdm

// The coarse clock is read in about 4 ns, the fine one in about 20; it ticks every 1 to 4 ms.
double coarse_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A terminal that is gone must not end a training run.
void write_text(int fd, std::string_view text) {
  write_all(fd, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

Progress::Progress(ProgressOptions options, ProgressTarget target)
    : options_(std::move(options)),
      target_(std::move(target)),
      start_(coarse_seconds()),
      count_(options_.initial),
      next_draw_(start_),
      last_time_(start_),
      last_count_(options_.initial) {
  LRA_CHECK_GE(target_.fill.size(), 2u);
  const bool silent = options_.quiet || target_.disabled;
  if (silent) {
    next_draw_ = std::numeric_limits<double>::infinity();
  } else if (target_.terminal) {
    const std::lock_guard lock(mutex_);
    draw(start_, false);
  } else {
    next_draw_ = start_ + kPlainInterval;
  }
}

Progress::~Progress() {
  const std::lock_guard lock(mutex_);
  if (!finished_ && drawn_width_ > 0) write("\n");
}

void Progress::update(int64_t count) {
  count_.fetch_add(count, std::memory_order_relaxed);
  const double now = coarse_seconds();
  if (now < next_draw_.load(std::memory_order_relaxed)) return;
  // Another thread that is drawing does the work for this one.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || finished_) return;
  observe_rate(now, count_.load(std::memory_order_relaxed));
  draw(now, false);
}

void Progress::set_postfix(const std::string& text) {
  const std::lock_guard lock(mutex_);
  postfix_ = printable(text);
}

void Progress::message(std::string_view text) {
  if (options_.quiet) return;
  const std::lock_guard lock(mutex_);
  // One write each, so that lines of several processes do not mix.
  std::string line(text);
  line += '\n';
  if (drawn_width_ > 0) {
    line = "\r" + std::string(static_cast<size_t>(drawn_width_), ' ') + "\r" + line;
  }
  write(line);
  if (drawn_width_ > 0) {
    drawn_width_ = 0;
    draw(coarse_seconds(), false);
  }
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  if (!options_.quiet && !target_.disabled) draw(coarse_seconds(), true);
  finished_ = true;
  drawn_width_ = 0;
}

void Progress::observe_rate(double now, int64_t count) {
  const double seconds = now - last_time_;
  if (seconds <= 0 || count == last_count_) return;
  mean_count_ += kSmoothing * (static_cast<double>(count - last_count_) - mean_count_);
  mean_seconds_ += kSmoothing * (seconds - mean_seconds_);
  last_time_ = now;
  last_count_ = count;
}

int Progress::columns() const {
  if (target_.columns > 0) return target_.columns;
  winsize size{};
  const bool known = ::ioctl(target_.fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

void Progress::draw(double now, bool last) {
  const int64_t count = count_.load(std::memory_order_relaxed);
  ProgressState state{.description = options_.description,
                      .unit = options_.unit,
                      .postfix = postfix_,
                      .count = count,
                      .total = options_.total,
                      .initial = options_.initial,
                      .elapsed_s = now - start_,
                      .unit_scale = options_.unit_scale};
  // The mean over the whole time ends the bar, as in tqdm.
  if (!last && mean_seconds_ > 0) state.rate = mean_count_ / mean_seconds_;
  if (target_.terminal) {
    draw_line(progress_line(state, columns(), target_.fill), last);
  } else {
    write(progress_line(state, 0, target_.fill) + "\n");
  }
  next_draw_.store(now + (target_.terminal ? target_.min_interval_s : kPlainInterval),
                   std::memory_order_relaxed);
}

void Progress::draw_line(const std::string& line, bool last) {
  const int width = display_width(line);
  // Spaces overwrite the rest of a longer previous line.
  const std::string rest(static_cast<size_t>(std::max(0, drawn_width_ - width)), ' ');
  write("\r" + line + rest + (last ? "\n" : ""));
  drawn_width_ = std::max(1, width);
}

void Progress::write(std::string_view text) const { write_text(target_.fd, text); }

void print_message(std::string_view text) { write_text(2, std::string(text) + '\n'); }

}  // namespace lra
