// Flips single bits of prepared datasets and opens them as training does: is each flip noticed?
//
// Usage: bit_flips FLIPS SEED TASK=FOLDER... One file of one folder at a time, all folders alike
// and all files of a folder alike, a random bit of it. Prints, per task, flips and how many were
// caught; a flip that was not is named. Exit code 1 when there is one.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "flip_bit.h"
#include "tasks/all.h"

namespace {

struct Prepared {
  std::string task, folder;
  std::vector<std::string> files;
  int64_t flips = 0, caught = 0;
};

Prepared parse(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) throw std::runtime_error("expected TASK=FOLDER: " + argument);
  Prepared data;
  data.task = argument.substr(0, equals);
  data.folder = argument.substr(equals + 1);
  for (const auto& entry : std::filesystem::directory_iterator(data.folder)) {
    if (entry.file_size() > 0) data.files.push_back(entry.path().string());
  }
  std::sort(data.files.begin(), data.files.end());
  return data;
}

// Empty when the data are opened without complaint.
std::string complaint(const Prepared& data) {
  const auto& spec = lra::tasks::find_task(data.task);
  try {
    lra::tasks::open_dataset(spec, *spec.make({}), data.folder);
  } catch (const lra::Error& error) {
    return error.what();
  }
  return "";
}

void attack(Prepared& data, std::mt19937_64& random) {
  const std::string& path = data.files[random() % data.files.size()];
  const uint64_t bit = random() % (std::filesystem::file_size(path) * 8);
  lra::faults::flip_bit(path, bit);
  const bool caught = !complaint(data).empty();
  lra::faults::flip_bit(path, bit);
  ++data.flips;
  data.caught += caught;
  if (!caught)
    std::printf("MISSED: bit %llu of %s\n", static_cast<unsigned long long>(bit), path.c_str());
}

int run(int argc, char** argv) {
  const int64_t flips = std::stol(argv[1]);
  std::mt19937_64 random(std::stoul(argv[2]));
  std::vector<Prepared> all;
  for (int i = 3; i < argc; ++i) all.push_back(parse(argv[i]));
  const auto expect_good = [&] {
    for (const Prepared& data : all) {
      if (const std::string text = complaint(data); !text.empty()) throw std::runtime_error(text);
    }
  };
  expect_good();
  for (int64_t i = 0; i < flips; ++i) attack(all[static_cast<size_t>(i) % all.size()], random);
  expect_good();  // else the flips were not undone, and what was caught says nothing
  bool all_caught = true;
  for (const Prepared& data : all) {
    std::printf("%s %lld %lld %zu\n", data.task.c_str(), static_cast<long long>(data.flips),
                static_cast<long long>(data.caught), data.files.size());
    all_caught &= data.caught == data.flips;
  }
  return all_caught ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bit_flips FLIPS SEED TASK=FOLDER...\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bit_flips: %s\n", error.what());
    return 2;
  }
}
