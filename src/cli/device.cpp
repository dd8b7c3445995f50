#include "cli/device.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/cuda.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "base/error.h"

namespace lra::cli {
namespace {

constexpr std::string_view kCuda = "cuda", kNumbered = "cuda:";
constexpr int kMostDevices = 64;  // of LibTorch

[[noreturn]] void refuse_device(const std::string& text, const std::string& what,
                                const std::string& expected, const std::string& advice) {
  throw Error({.where = "--device " + text, .what = what, .expected = expected, .advice = advice});
}

// N of "cuda:N"; nothing for other text.
std::optional<int> number_of(const std::string& text) {
  if (!text.starts_with(kNumbered)) return {};
  const char *begin = text.data() + kNumbered.size(), *end = text.data() + text.size();
  int number = 0;
  const auto [stop, code] = std::from_chars(begin, end, number);
  if (code != std::errc() || stop != end || number < 0) return {};
  return number;
}

bool has_gpu_kernels() {
  const auto op = c10::Dispatcher::singleton().findSchema({"lra::attention_forward", ""});
  return op && op->hasKernelForDispatchKey(c10::DispatchKey::CUDA);
}

int local_rank() {
  for (const char* name : {"LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const char* text = std::getenv(name)) return std::max(0, std::atoi(text));
  }
  return 0;
}

// The model of all GPUs, as reported by NVIDIA's driver; empty if it reports none, or if there are
// several models, since the library orders them in its own way.
std::string gpu_model() {
  constexpr std::string_view kModel = "Model:";
  std::set<std::string> models;
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    std::ifstream in(gpu.path() / "information");
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with(kModel)) continue;
      const size_t begin = line.find_first_not_of(" \t", kModel.size());
      if (begin != std::string::npos) models.insert(line.substr(begin));
    }
  }
  return models.size() == 1 ? *models.begin() : "";
}

}  // namespace

void check_device_name(const std::string& text) {
  if (text != "cpu" && text != kCuda && !number_of(text))
    refuse_device(text, "is not a device", "cpu, cuda or cuda:N", "");
}

at::Device find_device(const std::string& text) {
  check_device_name(text);
  if (text == "cpu") return at::kCPU;
  const auto number = number_of(text);
  const int count = torch::cuda::device_count();
  if (count == 0) {
    refuse_device(text, "there is no GPU here, or LibTorch was built without CUDA",
                  "a machine with an NVIDIA GPU, and a LibTorch with CUDA",
                  "leave out --device to compute on the CPU; see lra info");
  }
  if (!has_gpu_kernels()) {
    refuse_device(text, "this program was built without GPU kernels",
                  "a build with the CUDA compiler",
                  "rebuild it on a machine with nvcc, or leave out --device to compute on the CPU");
  }
  if (number && *number >= std::min(count, kMostDevices)) {
    refuse_device(text, "there is no GPU " + std::to_string(*number),
                  count == 1 ? "cuda:0" : "cuda:0 to cuda:" + std::to_string(count - 1),
                  "see lra info");
  }
  return {at::kCUDA, static_cast<c10::DeviceIndex>(number.value_or(local_rank() % count))};
}

void ask_for_same_bits(at::Device device) {
  if (device.is_cpu()) return;
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  // Everything that is read was written before; filling it with NaN as well would cost a pass.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  // Keeps products of float32 in float32, and sums of bfloat16 too, regardless of the environment.
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  // cuBLAS gives the same bits only with a workspace of fixed size.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

std::string device_title(at::Device device) {
  const std::string model = device.is_cuda() ? gpu_model() : "";
  return device.str() + (model.empty() ? "" : " " + model);
}

std::string gpus_found() {
  const int count = torch::cuda::device_count();
  if (count == 0) return "none";
  const std::string model = gpu_model();
  return std::to_string(count) + " x " + (model.empty() ? "NVIDIA" : model) +
         (has_gpu_kernels() ? "" : ", which this build has no kernels for");
}

}  // namespace lra::cli
