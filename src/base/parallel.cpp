#include "base/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

namespace lra {
namespace {

// Keeps an exception of a parallel region, since none may leave an OpenMP block: that of the lowest
// index, whichever thread is faster. Higher indices are then not begun.
class FirstException {
 public:
  explicit FirstException(int64_t count) : at_(count) {}

  template <typename F>
  void guard(int64_t index, const F& f) {
    if (index > at_.load(std::memory_order_relaxed)) return;
    try {
      f();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (index >= at_) return;
      at_ = index;
      first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic<int64_t> at_;
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace

int num_threads() { return omp_get_max_threads(); }

void set_num_threads(int count) { omp_set_num_threads(std::max(1, count)); }

void parallel_for_each(int64_t count, const std::function<void(int64_t)>& body) {
  if (count <= 1 || num_threads() == 1 || omp_in_parallel()) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  FirstException failure(count);
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t i = 0; i < count; ++i) failure.guard(i, [&] { body(i); });
  failure.rethrow();
}

void parallel_ranges(int64_t count, int64_t grain,
                     const std::function<void(int64_t, int64_t)>& body) {
  const int64_t most = std::max<int64_t>(1, count / std::max<int64_t>(1, grain));
  const int64_t ranges = omp_in_parallel() ? 1 : std::min<int64_t>(num_threads(), most);
  if (ranges <= 1) {
    if (count > 0) body(0, count);
    return;
  }
  FirstException failure(ranges);
#pragma omp parallel for schedule(static, 1)
  for (int64_t r = 0; r < ranges; ++r) {
    failure.guard(r, [&] { body(count * r / ranges, count * (r + 1) / ranges); });
  }
  failure.rethrow();
}

}  // namespace lra
