// Memory of large CPU tensors: a separate arena, whose pages are kept between steps.
#pragma once

#include <cstddef>

namespace lra::training {

// Smaller blocks come from the C library's heap. Large ones there would be split for small objects
// that outlive them, and leave holes: half as much again as all tensors of a step.
inline constexpr size_t kLeastArenaBytes = 64 << 10;

// Makes LibTorch allocate CPU tensors from a base/page_arena.h as large as this machine's memory;
// tensors that do not fit come from the heap. Under a limit on addresses (ulimit -v) each gets half
// of them. Call this once, before the first tensor; it holds for the rest of the process.
void keep_tensors_in_arena();

// Returns unused memory of the arena and the heap to the system.
void give_back_free_memory();

}  // namespace lra::training
