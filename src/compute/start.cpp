// The start of a program with tensors, its devices and its provenance.
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>

#include "cli/compute.h"
#include "cli/device.h"
#include "kernels/choice.h"
#include "ops/libtorch.h"
#include "ops/linear.h"
#include "training/run/tensor_memory.h"

namespace lra::cli {
namespace {

constexpr int kMostDevices = 64;  // of LibTorch

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

// Asks LibTorch for deterministic operators: by default it prefers faster ones on a GPU. An
// operator without a deterministic version warns on standard error.
void ask_for_same_bits() {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  // Everything that is read was written before; filling it with NaN as well would cost a pass.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  // Keeps products of float32 in float32, and sums of bfloat16 too, regardless of the environment.
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  // cuBLAS gives the same bits only with a workspace of fixed size.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

}  // namespace

void need_tensors() {}
int run_with_tensors(int, char**) { std::abort(); }  // never called: nothing is missing here

void start_tensors(const std::string& device, int threads) {
  training::keep_tensors_in_arena();
  if (threads > 0) at::set_num_threads(threads);
  if (device != "cpu") ask_for_same_bits();
}

std::string find_gpu(const std::string& text, std::optional<int> number) {
  const int count = torch::cuda::device_count();
  if (count == 0) {
    refuse("--device " + text, "there is no GPU here, or LibTorch was built without CUDA",
           "a machine with an NVIDIA GPU, and a LibTorch with CUDA",
           "leave out --device to compute on the CPU; see lra info");
  }
  if (!has_gpu_kernels()) {
    refuse("--device " + text, "this program was built without GPU kernels",
           "a build with the CUDA compiler",
           "rebuild it on a machine with nvcc, or leave out --device to compute on the CPU");
  }
  if (number && *number >= std::min(count, kMostDevices)) {
    refuse("--device " + text, "there is no GPU " + std::to_string(*number),
           count == 1 ? "cuda:0" : "cuda:0 to cuda:" + std::to_string(count - 1), "see lra info");
  }
  return "cuda:" + std::to_string(number.value_or(local_rank() % count));
}

std::string gpus_found() {
  const int count = torch::cuda::device_count();
  if (count == 0) return "none";
  const std::string model = gpu_model();
  return std::to_string(count) + " x " + (model.empty() ? "NVIDIA" : model) +
         (has_gpu_kernels() ? "" : ", which this build has no kernels for");
}

Provenance program_provenance(const CommonOptions& common) {
  std::vector<std::string> command = common.argv;
  // The program's path does not affect the result, and reveals something about its owner.
  if (!command.empty()) command[0] = "lra";
  Provenance provenance = make_provenance(command);
  provenance.torch_version = TORCH_VERSION;
  provenance.device = device_title(common.device);
  // On a GPU every operator has one implementation, except dense attention in bfloat16.
  const auto chosen = [&](const std::string& on_cpu) {
    return common.on_cpu() ? on_cpu : common.device.substr(0, common.device.find(':'));
  };
  for (const auto& choice : kernels::kernel_choices())
    provenance.kernels[choice.op] = chosen(choice.implementation);
  provenance.kernels["linear"] = chosen(ops::linear_choice());
  provenance.kernels["linear_bf16"] = chosen(kernels::has_tiles() ? "amx" : ops::linear_choice());
  if (!common.on_cpu()) provenance.kernels["attention_dense_bf16"] = "library";
  return provenance;
}

}  // namespace lra::cli
