#include "kernels/scan/state_scan.h"

#include <memory>

#include "base/error.h"
#include "kernels/example_sums.h"

namespace lra::kernels {
namespace {

template <typename T>
StateScanParts<T> choose_state_scan_parts() {
  LRA_RETURN_BEST(T, Op::kStateScan, state_scan_parts<T>());
}

template <typename T, typename Body>
void for_each_state_task(const StateScan<T>& p, const Body& body) {
  LRA_CHECK(p.directions == 1 || p.directions == 2);
  const int64_t blocks = (p.states + kScanStates - 1) / kScanStates;
  parallel_for_each(p.batch * blocks, [&](int64_t n) {
    body(StateTask{n / blocks, n % blocks * kScanStates});
  });
}

}  // namespace

template <typename T>
void state_scan_forward(const StateScan<T>& p, T* x) {
  const StateScanParts<T> parts = choose_state_scan_parts<T>();
  for_each_state_task(p, [&](const StateTask& task) { parts.forward(p, task, x); });
}

template <typename T>
void state_scan_backward(const StateScanBackward<T>& p) {
  const StateScanParts<T> parts = choose_state_scan_parts<T>();
  const int64_t batch = p.problem.batch, count = 2 * p.problem.states;
  const auto of_examples =
      std::make_unique_for_overwrite<Wide<T>[]>(static_cast<size_t>(batch * count));
  for_each_state_task(p.problem, [&](const StateTask& task) {
    parts.backward(p, task, of_examples.get() + task.example * count);
  });
  sum_over_examples(of_examples.get(), batch, count, p.grad_a);
}

template void state_scan_forward(const StateScan<float>&, float*);
template void state_scan_forward(const StateScan<Bf16>&, Bf16*);
template void state_scan_forward(const StateScan<double>&, double*);
template void state_scan_backward(const StateScanBackward<float>&);
template void state_scan_backward(const StateScanBackward<Bf16>&);
template void state_scan_backward(const StateScanBackward<double>&);

}  // namespace lra::kernels
