// A device that stands in for a GPU in tests of what must hold on any device but the CPU: a backend
// of LibTorch (PrivateUse1) of the name "standin", with one device.
//
// Its operators are the CPU's kernels on the same bytes, so that results must equal the CPU's bit
// for bit. As a GPU does, it refuses what it is not given in its own memory, and memory of its own
// has addresses that no code of the host can read: a data_ptr that is followed ends the program.
#pragma once

#include <ATen/ATen.h>

namespace lra {

// kPrivateUse1, index 0. The first call registers the backend.
at::Device stand_in();

// How many operators ran on it so far, copies from and to it counted as well.
int64_t stand_in_calls();

}  // namespace lra
