#include "analysis/timed_windows.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text_format.h"

namespace lra::analysis {
namespace {

constexpr double kQuietSpread = 0.1;  // of the median

}  // namespace

TimedWindows::TimedWindows(std::vector<double> rates) : rates_(std::move(rates)), sorted_(rates_) {
  LRA_CHECK(!rates_.empty());
  std::sort(sorted_.begin(), sorted_.end());
}

double TimedWindows::median() const {
  const size_t middle = sorted_.size() / 2;
  return sorted_.size() % 2 == 1 ? sorted_[middle] : (sorted_[middle - 1] + sorted_[middle]) / 2;
}

std::optional<std::string> TimedWindows::warning() const {
  const double spread = (fastest() - slowest()) / median();
  if (spread <= kQuietSpread) return std::nullopt;
  const bool falls =
      rates_.size() > 2 && std::is_sorted(rates_.begin(), rates_.end(), std::greater<>());
  return "the windows differ by " + fixed(100 * spread, 0) + " %" +
         (falls ? ", each slower than the one before: does the processor get hot?"
                : ": does something else run on this machine?");
}

TimedWindows timed_windows(const std::function<void()>& step, int64_t windows, double seconds,
                           const WindowHooks& hooks) {
  std::vector<double> rates;
  for (int64_t w = 0; w < windows; ++w) {
    hooks.before();
    const Stopwatch watch;
    int64_t steps = 0;
    do {
      step();
      ++steps;
    } while (watch.seconds() < seconds);
    rates.push_back(static_cast<double>(steps) / watch.seconds());
    hooks.after(rates.back());
  }
  return TimedWindows(std::move(rates));
}

}  // namespace lra::analysis
