// How fast batches are made from prepared data in the page cache.
//
// Usage: bench_loader [SECONDS] (per row, default 2). GB/s counts bytes of tokens as stored, one
// each; a batch holds them as int32, so four times as much is written. "made" calls make_batch on
// one thread; "loaded" takes what BatchLoader with 2 batches ahead gives.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>

#include "base/clock.h"
#include "training/loop/batches.h"

namespace {

namespace fs = std::filesystem;
using lra::TaskShape;
using lra::training::BatchLoader;

struct Row {
  const char* name;
  TaskShape shape;
  int64_t batch, examples;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"Text 4K", {.length = 4096, .vocabulary = 257, .num_classes = 2}, 32, 16384},
      {"Image",
       {.length = 1024,
        .vocabulary = 256,
        .num_classes = 10,
        .num_towers = 1,
        .has_padding = false},
       256,
       45000},
      {"Path-X",
       {.length = 16384,
        .vocabulary = 256,
        .num_classes = 2,
        .num_towers = 1,
        .has_padding = false},
       32,
       4096}};
  return all;
}

lra::Split write_split(const Row& row, const std::string& folder) {
  lra::Manifest manifest;
  manifest.task = "bench";
  manifest.source = "generated";
  manifest.token_offset = row.shape.has_padding ? 1 : 0;
  lra::DatasetWriter writer(folder, manifest, 0);
  std::mt19937_64 random(0);
  std::vector<uint8_t> sequence(static_cast<size_t>(row.shape.length));
  writer.begin_split("train");
  for (int64_t i = 0; i < row.examples; ++i) {
    for (uint8_t& value : sequence) value = static_cast<uint8_t>(random());
    writer.add(static_cast<int32_t>(i % 2), sequence);
  }
  writer.finish();
  return lra::Dataset::open(folder).split("train");  // reads all of it, so it is cached
}

// GB of stored tokens that `make(step)` takes in a second, elapsed and of the processor.
struct Speed {
  double elapsed, processor;
};

template <typename Make>
Speed speed_of(const Row& row, double seconds, const Make& make) {
  int64_t step = 0;
  const lra::Stopwatch watch;
  const std::clock_t before = std::clock();
  while (watch.seconds() < seconds) make(step++);
  const double gigabytes = static_cast<double>(step * row.batch * row.shape.length) * 1e-9;
  const auto ticks = static_cast<double>(std::clock() - before);
  return {gigabytes / watch.seconds(), gigabytes * CLOCKS_PER_SEC / ticks};
}

void measure(const Row& row, const std::string& folder, double seconds) {
  const lra::Split split = write_split(row, folder);
  const lra::BatchOrder order(split.size(), row.batch, 1);
  std::vector<int64_t> indices(static_cast<size_t>(row.batch));
  const Speed made = speed_of(row, seconds, [&](int64_t step) {
    order.fill(step, indices);
    lra::training::make_batch(split, indices, row.shape, false);
  });
  BatchLoader loader(split, row.shape, order, 0, {.trim = false, .prefetch = 2});
  const Speed loaded = speed_of(row, seconds, [&](int64_t) { loader.next(); });
  std::printf("%-8s %3lld x %5lld: made %.2f GB/s elapsed, %.2f processor; loaded %.2f, %.2f\n",
              row.name, static_cast<long long>(row.batch), static_cast<long long>(row.shape.length),
              made.elapsed, made.processor, loaded.elapsed, loaded.processor);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    // Heap settings of the program (src/cli/main.cpp): fresh pages for each batch would cost more
    // than its work.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 64 << 20);
    const double seconds = argc > 1 ? std::stod(argv[1]) : 2;
    const std::string root = (fs::temp_directory_path() / "lra-bench-loader").string();
    for (const Row& row : rows()) {
      fs::remove_all(root);
      measure(row, root, seconds);
    }
    fs::remove_all(root);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_loader: %s\n", error.what());
    return 1;
  }
}
