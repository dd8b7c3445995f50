// Runs one fuzz target over files and folders of inputs, without libFuzzer: fuzz_png FOLDER.
//
// Ends with 1 when an exception leaves the target or an input takes over a second of processor
// time.
#include <algorithm>
#include <ctime>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "fuzz_target.h"
#include "io/atomic_file.h"

namespace {

constexpr double kMaxSeconds = 1;

std::vector<std::string> inputs_under(int count, char** paths) {
  std::vector<std::string> inputs;
  for (int i = 0; i < count; ++i) {
    if (!std::filesystem::is_directory(paths[i])) {
      inputs.emplace_back(paths[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(paths[i])) {
      if (entry.is_regular_file()) inputs.push_back(entry.path().string());
    }
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

// Processor time that the input took, in seconds.
double run(const std::string& path) {
  const std::string content = lra::read_file(path, uint64_t{1} << 30);
  const std::clock_t begin = std::clock();
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> inputs = inputs_under(argc - 1, argv + 1);
  double slowest = 0;
  for (const std::string& path : inputs) {
    try {
      slowest = std::max(slowest, run(path));
    } catch (const std::exception& problem) {
      std::cerr << path << ": " << problem.what() << "\n";
      return 1;
    }
    if (slowest > kMaxSeconds) {
      std::cerr << path << ": took " << slowest << " s\n";
      return 1;
    }
  }
  std::cout << inputs.size() << " inputs, slowest " << slowest * 1000 << " ms\n";
  return inputs.empty() ? 1 : 0;
}
