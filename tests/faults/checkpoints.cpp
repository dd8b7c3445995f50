// Opens checkpoints as `lra train --resume` does, for the scripts beside it.
//
//   checkpoints load                     reads folders checkpoints/ from standard input; answers
//   each
//                                        with one line, "OK 10 15 20" or what is wrong
//   checkpoints flip FLIPS SEED FOLDER   flips single bits of the files of the one step in FOLDER,
//                                        prints flips and how many were noticed, names the others
//   checkpoints speed MEGABYTES          GB per second of processor time, reading one back
//
// Exit code 1 when a flip went unnoticed.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/scratch_folder.h"
#include "flip_bit.h"
#include "io/safetensors.h"
#include "training/run/checkpoint.h"

namespace {

namespace fs = std::filesystem;
using lra::training::CheckpointStore;
using lra::training::FlatParameters;

// The tensors that the weights in `folder` have, all zero.
FlatParameters parameters_like(const std::string& folder) {
  const auto file = lra::SafetensorsFile::open(folder + "/model.safetensors");
  std::vector<lra::models::Parameter> tensors;
  for (const lra::TensorView& tensor : file.tensors()) {
    tensors.emplace_back(tensor.name, at::zeros(tensor.shape));
  }
  return FlatParameters(std::move(tensors));
}

std::vector<std::string> step_folders(const std::string& checkpoints) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step_") && entry.path().extension() != ".partial") {
      folders.push_back(entry.path());
    }
  }
  return folders;
}

// The run that a checkpoint says it is of.
lra::RunIdentity run_of(const std::string& step_folder) {
  const auto file = lra::SafetensorsFile::open(step_folder + "/model.safetensors");
  return lra::find_identity(file.metadata(), file.path()).value();
}

// The step of a checkpoint; throws lra::Error when it is refused. Alone in a folder, so that the
// store has nothing to fall back to.
int64_t load_alone(const std::string& step_folder) {
  const lra::ScratchFolder scratch;
  const fs::path path = fs::absolute(step_folder);
  fs::create_directory_symlink(path, scratch.file(path.filename()));
  FlatParameters parameters = parameters_like(path);
  std::vector<std::string> problems;
  const auto found =
      CheckpointStore(scratch.path(), 1, {run_of(path)}).load_latest(parameters, &problems);
  if (!found) throw std::runtime_error(problems.empty() ? "nothing is there" : problems.front());
  return found->step;
}

std::string verdict(const std::string& checkpoints) {
  std::vector<int64_t> steps;
  try {
    for (const std::string& folder : step_folders(checkpoints)) {
      steps.push_back(load_alone(folder));
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  std::sort(steps.begin(), steps.end());
  std::string text = "OK";
  for (const int64_t step : steps) text += " " + std::to_string(step);
  return text;
}

int load() {
  for (std::string folder; std::getline(std::cin, folder);) {
    std::cout << verdict(folder) << std::endl;
  }
  return 0;
}

int flip(int64_t flips, uint64_t seed, const std::string& checkpoints) {
  std::mt19937_64 random(seed);
  const std::string folder = step_folders(checkpoints).at(0);
  const std::vector<std::string> files = {folder + "/model.safetensors",
                                          folder + "/optimizer.safetensors"};
  FlatParameters parameters = parameters_like(folder);
  const CheckpointStore store(checkpoints, 1, {run_of(folder)});
  const auto complaints = [&] {
    std::vector<std::string> problems;
    store.load_latest(parameters, &problems);
    return problems.size();
  };
  if (complaints() > 0) throw std::runtime_error("the checkpoint is bad before any flip");
  int64_t caught = 0;
  for (int64_t i = 0; i < flips; ++i) {
    const std::string& path = files[static_cast<size_t>(i) % files.size()];
    // Every second one in the header, where the few bytes are that say what the others mean.
    const uint64_t size = fs::file_size(path);
    const uint64_t bytes = i % 4 < 2 ? std::min<uint64_t>(size, 2000) : size;
    const uint64_t bit = random() % (bytes * 8);
    lra::faults::flip_bit(path, bit);
    const bool noticed = complaints() > 0;
    lra::faults::flip_bit(path, bit);
    caught += noticed;
    if (!noticed) {
      std::printf("MISSED: bit %llu of %s\n", static_cast<unsigned long long>(bit), path.c_str());
    }
  }
  if (complaints() > 0) throw std::runtime_error("the flips were not undone");
  std::printf("checkpoint %lld %lld %zu\n", static_cast<long long>(flips),
              static_cast<long long>(caught), files.size());
  return caught == flips ? 0 : 1;
}

int speed(int64_t megabytes) {
  const lra::ScratchFolder scratch;
  // Weights and two moments of four bytes each.
  const int64_t width = 1000, rows = megabytes * 1000000 / 12 / width;
  FlatParameters parameters({{"encoder.weight", at::rand({rows, width})}});
  CheckpointStore store(scratch.path(), 1, {lra::RunIdentity{}});
  store.save(parameters, {.step = 1}, false);
  std::vector<std::string> problems;
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t begin = std::clock();
    if (!store.load_latest(parameters, &problems)) throw std::runtime_error(problems.at(0));
    seconds.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  std::sort(seconds.begin(), seconds.end());
  const double bytes = 12.0 * static_cast<double>(rows * width);
  std::printf("checkpoint: verified and read %.2f GB/s processor (median of 5)\n",
              bytes / 1e9 / seconds[2]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  lra::set_num_threads(1);
  at::set_num_threads(1);
  try {
    if (words.size() == 1 && words[0] == "load") return load();
    if (words.size() == 4 && words[0] == "flip") {
      return flip(std::stol(words[1]), std::stoul(words[2]), words[3]);
    }
    if (words.size() == 2 && words[0] == "speed") return speed(std::stol(words[1]));
    std::fprintf(stderr, "usage: checkpoints load | flip FLIPS SEED FOLDER | speed MEGABYTES\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkpoints: %s\n", error.what());
  }
  return 2;
}
