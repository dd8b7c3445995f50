// The device that a command computes on: what --device says, and whether it is there.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace lra::cli {

// "cpu", "cuda" or "cuda:N" -> the device, with its number. "cuda" is GPU 0 or, among the processes
// of one machine that a launcher started (LOCAL_RANK, SLURM_LOCALID), the GPU of that number,
// counted round. Throws lra::Error for other text, for a GPU that is not there, and when this
// program has no kernels for one.
at::Device find_device(const std::string& text);

// Asks LibTorch for operators that give the same bits every time, for the rest of the process: on a
// GPU it prefers faster ones unless told. One that has no such form warns on standard error.
// Nothing to do on the CPU. Before the first product.
void ask_for_same_bits(at::Device device);

// Name for records: "cpu", or "cuda:0" and the model of the GPU if the driver reports it.
std::string device_title(at::Device device);

// Number and model of the GPUs, or that there is none, for people.
std::string gpus_found();

}  // namespace lra::cli
