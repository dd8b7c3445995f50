// Sums over ranks on GPUs by NVIDIA's NCCL, through LibTorch's c10d.
#pragma once

#include "training/ranks/process_group.h"

namespace lra::training {

// For float32 tensors on this GPU, one for each rank. Ranks connect when it is opened; one that
// ends just then is not noticed. A wait blocks until the sum is there. Throws lra::Error (2) if
// this program was built without NCCL's header; what it gives throws lra::Error (74) with NCCL's
// reason if the GPUs cannot connect.
OpenBackend nccl_on(at::Device gpu);

}  // namespace lra::training
