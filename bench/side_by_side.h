// Timing of two ways to do the same thing: A B A B, so that both see the same weather, and the
// median of each.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "base/clock.h"

namespace lra {

struct SideBySide {
  double ours_s = 0, theirs_s = 0;  // medians
  double ratio() const { return theirs_s / ours_s; }
};

inline double seconds_of(const std::function<void()>& run) {
  const Stopwatch watch;
  run();
  return watch.seconds();
}

inline double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x.size() % 2 == 1 ? x[x.size() / 2] : (x[x.size() / 2 - 1] + x[x.size() / 2]) / 2;
}

// `rounds` timed rounds of each after one of each that is not timed.
inline SideBySide side_by_side(int rounds, const std::function<void()>& ours,
                               const std::function<void()>& theirs) {
  ours();
  theirs();
  std::vector<double> ours_s, theirs_s;
  for (int i = 0; i < rounds; ++i) {
    ours_s.push_back(seconds_of(ours));
    theirs_s.push_back(seconds_of(theirs));
  }
  return {median(ours_s), median(theirs_s)};
}

}  // namespace lra
