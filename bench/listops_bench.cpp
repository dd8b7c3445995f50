// How fast Long ListOps is made: examples generated, evaluated and written, per second.
//
// Usage: bench_listops [EXAMPLES [FOLDER]] (100,000 in the system's folder for temporary files).
// Measured twice: as prepared shards, and as the official TSV files, written as they are generated.
// Both are flushed to the disk. The ratio is to 230 examples/s, the speed of the released script.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/parallel.h"
#include "io/atomic_file.h"
#include "io/progress.h"
#include "tasks/all.h"
#include "tasks/listops/generator.h"
#include "tasks/listops/tsv.h"

namespace {

constexpr double kReleasedScript = 230;  // examples/s

lra::ProgressOptions quiet() {
  lra::ProgressOptions options;
  options.quiet = true;
  return options;
}

void report(const char* what, int64_t examples, double seconds, uint64_t bytes) {
  const double speed = static_cast<double>(examples) / seconds;
  std::printf("%-8s %8lld examples  %6.2f s  %9.0f examples/s  %6.0f x  %7.1f MB\n", what,
              static_cast<long long>(examples), seconds, speed, speed / kReleasedScript,
              static_cast<double>(bytes) * 1e-6);
}

uint64_t folder_bytes(const std::string& folder) {
  uint64_t total = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) total += entry.file_size();
  }
  return total;
}

void measure_shards(const std::array<int64_t, 3>& sizes, const std::string& out) {
  const auto task = lra::tasks::find_task("listops").make({});
  lra::Progress progress(quiet());
  const lra::Stopwatch watch;
  task->make(
      {.out = out, .seed = 1, .num_train = sizes[0], .num_val = sizes[1], .num_test = sizes[2]},
      progress);
  report("shards", sizes[0] + sizes[1] + sizes[2], watch.seconds(), folder_bytes(out));
}

void measure_tsv(const std::array<int64_t, 3>& sizes, const std::string& out) {
  lra::make_folder(out);
  lra::Progress progress(quiet());
  const lra::Stopwatch watch;
  std::array<std::unique_ptr<lra::AtomicFile>, 3> files;
  for (size_t i = 0; i < files.size(); ++i) {
    files[i] = std::make_unique<lra::AtomicFile>(out + "/basic_" + lra::kSplitNames[i] + ".tsv");
    files[i]->append(std::string_view(lra::tasks::kListOpsTsvHeader));
  }
  const auto write = [&](std::span<const lra::tasks::ListOpsExample> examples) {
    constexpr int64_t kChunks = 16;
    std::array<std::string, kChunks> texts;
    const auto count = static_cast<int64_t>(examples.size());
    lra::parallel_for_each(kChunks, [&](int64_t chunk) {
      for (int64_t i = count * chunk / kChunks; i < count * (chunk + 1) / kChunks; ++i) {
        const auto& example = examples[static_cast<size_t>(i)];
        lra::tasks::append_listops_line(example.symbols, example.label,
                                        texts[static_cast<size_t>(chunk)]);
      }
    });
    const auto split = static_cast<size_t>(examples.front().split);
    for (const std::string& text : texts) files[split]->append(std::string_view(text));
  };
  lra::tasks::generate_listops({}, 1, sizes, write, progress);
  for (const auto& file : files) file->commit();
  report("TSV", sizes[0] + sizes[1] + sizes[2], watch.seconds(), folder_bytes(out));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int64_t examples = argc > 1 ? std::max(1L, std::stol(argv[1])) : 100000;
    const int64_t held = examples / 50;  // 2 % each, as in the benchmark
    const std::array<int64_t, 3> sizes = {examples - 2 * held, held, held};
    const auto parent =
        argc > 2 ? std::filesystem::path(argv[2]) : std::filesystem::temp_directory_path();
    const std::string folder = (parent / "lra-bench-listops").string();
    std::filesystem::remove_all(folder);
    std::printf("%d threads\n", lra::num_threads());
    measure_shards(sizes, folder + "/prepared");
    measure_tsv(sizes, folder + "/listops-1000");
    std::filesystem::remove_all(folder);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_listops: %s\n", error.what());
    return 1;
  }
}
