// Timing of two ways to do the same thing: A B A B, so that both see the same weather, and the
// median of each. On one thread (OMP_NUM_THREADS=1) processor time counts, on which other programs
// have less influence.
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/parallel.h"

namespace lra {

struct SideBySide {
  double ours_s = 0, theirs_s = 0;  // medians
  double ratio() const { return theirs_s / ours_s; }
};

inline double seconds_of(const std::function<void()>& run) {
  const auto now = [] {
    return num_threads() == 1 ? static_cast<double>(std::clock()) / CLOCKS_PER_SEC
                              : monotonic_seconds();
  };
  const double begin = now();
  run();
  return now() - begin;
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
