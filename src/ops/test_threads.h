// Comparison of an operator's results at several numbers of threads.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/parallel.h"
#include "ops/libtorch.h"

namespace lra::ops {

inline void expect_same_bits_at_any_number_of_threads(
    const std::function<std::vector<at::Tensor>()>& run) {
  const int before = num_threads(), library_before = at::get_num_threads();
  std::vector<at::Tensor> of_one;
  for (const int threads : {1, 2, 3, 4}) {
    set_num_threads(threads);
    at::set_num_threads(threads);
    const std::vector<at::Tensor> results = run();
    if (of_one.empty()) of_one = results;
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_TRUE(at::equal(results[i], of_one[i])) << "result " << i << ", threads " << threads;
    }
  }
  at::set_num_threads(library_before);
  set_num_threads(before);
}

}  // namespace lra::ops
