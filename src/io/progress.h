// A progress bar with the look of tqdm.
//
//   train:  45%|████▌     | 450/1000 [00:12<00:15, 36.21it/s, loss=0.69]
//
// On a terminal it redraws one line of standard error; elsewhere it prints a plain line at most
// every 10 seconds and one at the end. TQDM_DISABLE, TQDM_MININTERVAL (seconds), TQDM_NCOLS and
// TQDM_ASCII (1, or the fill characters from empty to full) are honored.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lra {

struct ProgressOptions {
  std::string description = {};
  int64_t total = 0;    // 0: unknown, no bar
  int64_t initial = 0;  // done before: counted, but not as work of this time
  std::string unit = "it";
  bool unit_scale = false;  // 12.3k, 4.56M
  bool quiet = false;       // print nothing at all
};

// Output stream and look.
struct ProgressTarget {
  int fd = 2;
  bool terminal = false;
  bool disabled = false;
  int columns = 80;                                // 0: ask the terminal at each redraw
  double min_interval_s = 0.1;                     // between two redraws
  std::vector<std::string> fill = unicode_fill();  // symbols of one cell, from empty to full

  static std::vector<std::string> unicode_fill();
  static std::vector<std::string> ascii_fill();
  // Standard error, with the TQDM_ variables of the environment.
  static ProgressTarget standard_error();
};

// Everything that a line shows.
struct ProgressState {
  std::string_view description, unit, postfix;
  int64_t count = 0, total = 0, initial = 0;
  double elapsed_s = 0;
  double rate = 0;  // per second; 0: not known yet
  bool unit_scale = false;
};
// One line of the bar, as drawn by Progress. `columns` 0 means a bar of ten columns and no limit.
// Items of the postfix, separated by ", ", are dropped from the last on if they do not fit.
std::string progress_line(const ProgressState& state, int columns,
                          const std::vector<std::string>& fill);

// Thread safe. update() costs two relaxed atomics and a coarse clock (7 ns) unless a redraw is
// due.
class Progress {
 public:
  explicit Progress(ProgressOptions options,
                    ProgressTarget target = ProgressTarget::standard_error());
  // Finishes without the last line when finish() was not called: the work was cut short.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t count = 1);
  // Shown from the next redraw on: "loss=0.69, acc=0.55".
  void set_postfix(const std::string& text);
  // Prints a line above the bar. Nothing when quiet.
  void message(std::string_view text);
  // Draws the last state, with the mean rate over the whole time. Further calls do nothing.
  void finish();

 private:
  void draw(double now, bool last);
  void draw_line(const std::string& line, bool last);
  void observe_rate(double now, int64_t count);
  int columns() const;
  void write(std::string_view text) const;

  const ProgressOptions options_;
  const ProgressTarget target_;
  const double start_;
  std::atomic<int64_t> count_;
  std::atomic<double> next_draw_;

  std::mutex mutex_;  // guards what follows
  std::string postfix_;
  bool finished_ = false;
  int drawn_width_ = 0;  // columns of the line on the screen
  // Exponential means of counts and seconds per redraw, weight 0.3 as in tqdm, corrected for their
  // start at zero by the same factor, which cancels in the quotient.
  double mean_count_ = 0, mean_seconds_ = 0;
  double last_time_;
  int64_t last_count_;
};

// A line on standard error where no bar is drawn, in one write.
void print_message(std::string_view text);

}  // namespace lra
