// How fast Pathfinder images are drawn, and what the official generator's counters say of them.
//
// Usage: bench_pathfinder [IMAGES [SIZE...]] (2,000 images of every size). Per size and difficulty
// (0 easy, 2 hard): CPU microseconds per image, seconds that 200,000 images take here, and three
// counters beside those of the public generator (its drawn samples): target pairs begun per image,
// distractors that found room, mean gray value. The last column is the public generator's CPU time
// over ours.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/parallel.h"
#include "tasks/pathfinder/generator.h"

namespace {

using lra::tasks::PathfinderGenerator;
using lra::tasks::PathfinderImage;

// Figures of the public generator, measured on its samples; 0: not measured.
struct Reference {
  int size, difficulty;
  double attempts, distractors, gray, seconds;
};
constexpr Reference kReferences[] = {
    {32, 0, 25.29, 3.34, 11.899, 0.0269}, {32, 1, 72.06, 3.03, 15.791, 0.0525},
    {32, 2, 328.3, 2.225, 19.976, 0.198}, {64, 2, 4431.6, 5.367, 16.153, 0},
    {128, 2, 276.1, 15.675, 9.812, 1.83}, {256, 2, 7.25, 7, 2.333, 0.17},
};

struct Totals {
  double attempts = 0, distractors = 0, gray = 0;
};

void measure(int size, int difficulty, int64_t count) {
  const PathfinderGenerator generator({.size = size, .difficulty = difficulty}, 1);
  std::vector<Totals> totals(static_cast<size_t>(count));
  const lra::Stopwatch watch;
  const std::clock_t cpu_before = std::clock();
  lra::parallel_for_each(count, [&](int64_t i) {
    const PathfinderImage image = generator.draw(i);
    double sum = 0;
    for (const uint8_t pixel : image.pixels) sum += pixel;
    totals[static_cast<size_t>(i)] = {static_cast<double>(image.num_attempts),
                                      static_cast<double>(image.num_distractors),
                                      sum / static_cast<double>(image.pixels.size())};
  });
  const double seconds = watch.seconds();
  const double cpu_seconds =
      static_cast<double>(std::clock() - cpu_before) / CLOCKS_PER_SEC / static_cast<double>(count);
  Totals mean;
  for (const Totals& one : totals) {
    mean.attempts += one.attempts / static_cast<double>(count);
    mean.distractors += one.distractors / static_cast<double>(count);
    mean.gray += one.gray / static_cast<double>(count);
  }
  std::printf("%3d %d  %9.1f us  200,000 in %7.1f s  pairs %8.1f", size, difficulty,
              1e6 * cpu_seconds, 2e5 * seconds / static_cast<double>(count), mean.attempts);
  for (const Reference& r : kReferences) {
    if (r.size != size || r.difficulty != difficulty) continue;
    std::printf(" (%.1f)  distractors %.3f (%.3f)  gray %.3f (%.3f)", r.attempts, mean.distractors,
                r.distractors, mean.gray, r.gray);
    if (r.seconds > 0) std::printf("  %.0f x", r.seconds / cpu_seconds);
    std::printf("\n");
    return;
  }
  std::printf("  distractors %.3f  gray %.3f\n", mean.distractors, mean.gray);
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t count = argc > 1 ? std::max(1L, std::stol(argv[1])) : 2000;
  std::vector<int> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::stoi(argv[i]));
  if (sizes.empty()) sizes = {32, 64, 128, 256};
  std::printf("%d threads; in brackets the public generator\n", lra::num_threads());
  for (const int size : sizes) {
    for (const int difficulty : {0, 1, 2}) measure(size, difficulty, count);
  }
}
