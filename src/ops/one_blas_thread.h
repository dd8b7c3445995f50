// Calls of the library's BLAS on one thread, inside a loop over threads of ours.
#pragma once

#include "ops/libtorch.h"

// MKL's, where that is the library's BLAS: threads for the calls of this thread, 0 for as many as
// elsewhere; returns what was set before.
extern "C" [[gnu::weak]] int MKL_Set_Num_Threads_Local(int count);

namespace lra::ops {

// Products of this thread alone. Told nothing, MKL cuts sums for as many threads as there are, on
// Intel processors even inside a parallel region, where it then takes one.
class OneBlasThread {
 public:
  OneBlasThread() {
    // A thread's first loop of LibTorch tells MKL the number again. It is had before ours.
    (void)at::get_num_threads();
    if (MKL_Set_Num_Threads_Local) before_ = MKL_Set_Num_Threads_Local(1);
  }
  ~OneBlasThread() {
    if (MKL_Set_Num_Threads_Local) MKL_Set_Num_Threads_Local(before_);
  }
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;

 private:
  int before_ = 0;
};

}  // namespace lra::ops
