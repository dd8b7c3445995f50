// Sums over ranks on GPUs by NVIDIA's NCCL, through LibTorch's c10d.
#pragma once

#include "training/ranks/process_group.h"

namespace lra::training {

// An OpenBackend for float32 tensors of GPUs, each rank with a GPU of its own. A wait blocks until
// the sum is there, and throws once `timeout` has passed. Throws lra::Error (2) if this program was
// built without NCCL's header.
c10::intrusive_ptr<c10d::Backend> open_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                            const Launch& launch,
                                            std::chrono::milliseconds timeout);

}  // namespace lra::training
