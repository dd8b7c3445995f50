// Calls the library's BLAS on one thread, inside one of our loops over threads.
#pragma once

#include "ops/libtorch.h"

// MKL's limit of threads for the calls of this thread, if MKL is the library's BLAS; 0: the global
// number. Returns the limit before.
extern "C" [[gnu::weak]] int MKL_Set_Num_Threads_Local(int count);

namespace lra::ops {

// Limits the products of this thread to one thread. By default MKL cuts sums for the global number
// of threads, on Intel processors even inside a parallel region, where it then takes one.
class OneBlasThread {
 public:
  OneBlasThread() {
    // A thread's first loop of LibTorch sets MKL's number again. This makes it happen before ours.
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
