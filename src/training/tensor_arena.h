// Memory of large tensors of the CPU: an arena of their own, whose pages stay between steps.
#pragma once

#include <cstddef>

namespace lra::training {

// Smaller blocks come from the C library's heap. Large ones there would be split for small objects
// that outlive them, and leave holes: half as much again as all tensors of a step.
inline constexpr size_t kLeastArenaBytes = 64 << 10;

// Makes LibTorch allocate the tensors of the CPU from a base/page_arena.h as large as this
// machine's memory; what does not fit there comes from the heap. Under a limit on addresses (ulimit
// -v) the two have half of them each. To be called once, before the first tensor, and for the rest
// of the process.
void keep_tensors_in_arena();

// Hands back to the system what neither tensors nor the heap use now.
void give_back_free_memory();

}  // namespace lra::training
