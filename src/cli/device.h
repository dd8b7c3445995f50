// The device that a command computes on: the value of --device, and a check that it exists.
#pragma once

#include <string>

namespace lra::cli {

// "cpu", "cuda" or "cuda:N" -> the device, with its number. "cuda" is GPU 0 or, among the processes
// of one machine that a launcher started (LOCAL_RANK, SLURM_LOCALID), the GPU of that number,
// counted round. Throws lra::Error for other text, for a GPU that is not there, and when this
// program has no kernels for one.
std::string find_device(const std::string& text);

// Throws lra::Error for what is not the name of a device. For commands that compute elsewhere.
void check_device_name(const std::string& text);

// The model of all GPUs, as reported by NVIDIA's driver; empty if it reports none, or if there are
// several models, since the library orders them in its own way.
std::string gpu_model();

// Name for records: "cpu", or "cuda:0" and the model of the GPU if the driver reports it.
std::string device_title(const std::string& device);

}  // namespace lra::cli
