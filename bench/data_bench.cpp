// How fast prepared data is verified, and official data imported.
//
// Usage: bench_data verify [MEGABYTES]       a text dataset of made-up bytes (default 512 MB)
//        bench_data import TASK FROM         an official layout, in a process of its own
//        bench_data pairs FROM MEGABYTES     retrieval pairs: the lines of the pairs file FROM
//                                            again and again under new ids, imported as above
// verify counts bytes of whole shards, read from the page cache through lra::tasks::open_dataset:
// hashes, offsets, and the largest token and label. import counts bytes of the files read, and
// prints the peak resident memory of the importing process.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/parallel.h"
#include "io/progress.h"
#include "tasks/all.h"

namespace {

namespace fs = std::filesystem;
constexpr int kRuns = 7;

struct TemporaryFolder {
  std::string path = (fs::temp_directory_path() / "lra-bench-data").string();
  TemporaryFolder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~TemporaryFolder() { fs::remove_all(path); }
};

int64_t bytes_below(const std::string& path) {
  if (fs::is_regular_file(path)) return static_cast<int64_t>(fs::file_size(path));
  int64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) total += static_cast<int64_t>(entry.file_size());
  }
  return total;
}

void write_text_dataset(const std::string& folder, int64_t megabytes) {
  lra::Manifest manifest;
  manifest.task = "text";
  manifest.task_version = lra::tasks::find_task("text").version;
  manifest.source = "imported";
  manifest.token_offset = 1;
  lra::DatasetWriter writer(folder, manifest, megabytes << 20);
  std::mt19937_64 random(0);
  std::vector<uint8_t> sequence(4096);
  writer.begin_split("train");
  for (int64_t i = 0; i < megabytes << 8; ++i) {
    for (uint8_t& value : sequence) value = static_cast<uint8_t>(random() & 127);
    writer.add(static_cast<int32_t>(i % 2), sequence);
  }
  writer.finish();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int verify(int64_t megabytes) {
  const TemporaryFolder root;
  const std::string folder = root.path + "/text";
  write_text_dataset(folder, megabytes);
  const auto& spec = lra::tasks::find_task("text");
  const auto task = spec.make({});
  const auto bytes = static_cast<double>(bytes_below(folder));
  for (const int threads : {1, lra::num_threads()}) {
    lra::set_num_threads(threads);
    std::vector<double> elapsed, processor;
    for (int run = 0; run < kRuns; ++run) {
      const lra::Stopwatch watch;
      const std::clock_t before = std::clock();
      lra::tasks::open_dataset(spec, *task, folder);
      elapsed.push_back(bytes * 1e-9 / watch.seconds());
      processor.push_back(bytes * 1e-9 * CLOCKS_PER_SEC /
                          static_cast<double>(std::clock() - before));
    }
    std::printf(
        "verify: %d threads, %.0f MB, medians of %d: %.2f GB/s elapsed, %.2f GB/s processor\n",
        threads, bytes * 1e-6, kRuns, median(elapsed), median(processor));
  }
  return 0;
}

int import(const std::string& name, const std::string& source) {
  const TemporaryFolder root;
  const auto bytes = static_cast<double>(bytes_below(source));
  const lra::Stopwatch watch;
  const pid_t child = ::fork();  // before any thread was started
  if (child == 0) {
    try {
      lra::ProgressOptions options;
      options.quiet = true;
      lra::Progress progress(options);
      lra::tasks::find_task(name).make({})->import({source}, root.path + "/" + name, progress);
      ::_exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench_data: %s\n", error.what());
      ::_exit(1);
    }
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  if (status != 0) return 1;
  const double seconds = watch.seconds();
  const auto seconds_of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  const double processor = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  std::printf(
      "import %s: %.0f MB read in %.2f s elapsed, %.2f s processor (%.0f MB/s), %.0f MB memory\n",
      name.c_str(), bytes * 1e-6, seconds, processor, bytes * 1e-6 / processor,
      static_cast<double>(usage.ru_maxrss) * 1024e-6);
  return 0;
}

// "label TAB id1 TAB id2 TAB rest" with the ids made new.
std::string renamed(const std::string& line, int64_t round) {
  const std::string mark = "-" + std::to_string(round);
  std::string text = line;
  size_t at = 0;
  for (int column = 0; column < 3; ++column) {
    at = text.find('\t', at);
    if (column > 0) text.insert(at, mark), at += mark.size();
    ++at;
  }
  return text;
}

int pairs(const std::string& source, int64_t megabytes) {
  const TemporaryFolder root;
  const std::string folder = root.path + "-pairs";
  fs::create_directories(folder);
  std::vector<std::string> lines;
  std::ifstream file(source);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  for (const char* split : {"train", "eval", "test"}) {
    std::ofstream out(folder + "/new_aan_pairs." + split + ".tsv");
    const int64_t wanted = split == std::string("train") ? megabytes << 20 : 1 << 20;
    for (int64_t i = 0; out.tellp() < wanted; ++i) {
      const auto count = static_cast<int64_t>(lines.size());
      out << renamed(lines[static_cast<size_t>(i % count)], i / count) << '\n';
    }
  }
  const int code = import("retrieval", folder);
  fs::remove_all(folder);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (!words.empty() && words[0] == "verify" && words.size() <= 2) {
      return verify(words.size() == 2 ? std::stol(words[1]) : 512);
    }
    if (words.size() == 3 && words[0] == "import") return import(words[1], words[2]);
    if (words.size() == 3 && words[0] == "pairs") return pairs(words[1], std::stol(words[2]));
    std::fprintf(stderr, "usage: bench_data verify [MB] | import TASK FROM | pairs FROM MB\n");
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_data: %s\n", error.what());
    return 1;
  }
}
