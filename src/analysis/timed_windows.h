// Steps timed in windows: the median, the spread, and whether the spread shows that something else
// was measured too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lra::analysis {

class TimedWindows {
 public:
  // Steps per second in the order of time; at least one.
  explicit TimedWindows(std::vector<double> rates);

  double median() const;
  double slowest() const { return sorted_.front(); }
  double fastest() const { return sorted_.back(); }

  // One sentence if the windows differ by more than a tenth of the median: either each is slower
  // than the one before, as on a processor that gets hot, or other programs ran at the same time.
  std::optional<std::string> warning() const;

 private:
  std::vector<double> rates_, sorted_;
};

// Called around each window, so that something else can be measured in turn.
struct WindowHooks {
  std::function<void()> before = [] {};
  std::function<void(double steps_per_s)> after = [](double) {};
};

// Each window has as many whole steps as it takes to fill `seconds`, at least one.
TimedWindows timed_windows(const std::function<void()>& step, int64_t windows, double seconds,
                           const WindowHooks& hooks = {});

}  // namespace lra::analysis
