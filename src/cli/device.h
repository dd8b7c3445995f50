// The device that a command computes on: the value of --device, and a check that it exists.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace lra::cli {

// "cpu", "cuda" or "cuda:N" -> the device, with its number. "cuda" is GPU 0 or, among the processes
// of one machine that a launcher started (LOCAL_RANK, SLURM_LOCALID), the GPU of that number,
// counted round. Throws lra::Error for other text, for a GPU that is not there, and when this
// program has no kernels for one.
at::Device find_device(const std::string& text);

// Throws lra::Error for what is not the name of a device. For commands that compute elsewhere.
void check_device_name(const std::string& text);

// Asks LibTorch for deterministic operators, for the rest of the process: by default it prefers
// faster ones on a GPU. An operator without a deterministic version warns on standard error. Does
// nothing on the CPU. Call it before the first product.
void ask_for_same_bits(at::Device device);

// Name for records: "cpu", or "cuda:0" and the model of the GPU if the driver reports it.
std::string device_title(at::Device device);

// Number and model of the GPUs, or that there is none, for people.
std::string gpus_found();

}  // namespace lra::cli
