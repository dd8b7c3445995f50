// The runs of a suite that train at the moment: a line of progress each, redrawn in place at the
// bottom of a terminal. Reads their logs, so that the runs themselves print nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "io/progress.h"

namespace lra::cli {

// The last line of training in metrics.jsonl: newer than the record, which is written with
// checkpoints.
struct Pace {
  int64_t step = 0;
  double loss = 0, accuracy = 0, tokens_per_s = 0;
};

// Nothing if there is no such file, or no line of training among its last.
std::optional<Pace> last_pace(const std::string& path);

class LiveLines {
 public:
  explicit LiveLines(ProgressTarget target) : target_(std::move(target)) {}
  ~LiveLines();
  LiveLines(const LiveLines&) = delete;
  LiveLines& operator=(const LiveLines&) = delete;

  // False where nothing is redrawn: no terminal, or TQDM_DISABLE.
  bool is_on() const { return target_.terminal && !target_.disabled; }
  // `log`: the run's metrics.jsonl. `steps`: of the whole training; 0: unknown.
  void add(size_t id, const std::string& name, const std::string& log, int64_t steps);
  void remove(size_t id) { lines_.erase(id); }
  // Prints a line above the others.
  void print(const std::string& text) { draw(text + "\n"); }
  // Draws the lines again, if a quarter of a second has passed.
  void update();

 private:
  struct Line {
    std::string name, log;
    int64_t steps = 0, initial = 0;
    double started = 0;
  };
  std::string text_of(const Line& line) const;
  // Takes the cursor to the first line and clears from there; draws `above` and all lines.
  void draw(const std::string& above);

  ProgressTarget target_;
  std::map<size_t, Line> lines_;
  size_t num_drawn_ = 0;
  double next_draw_ = 0;
};

}  // namespace lra::cli
