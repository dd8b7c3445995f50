#include "kernels/scan/diagonal_scan.h"

#include <memory>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/example_sums.h"
#include "kernels/flush_denormals.h"
#include "kernels/scan/scan_by_convolution.h"

namespace lra::kernels {
namespace {

template <typename T>
ScanParts<T> choose_scan_parts() {
  LRA_RETURN_BEST(T, Op::kDiagonalScan, scan_parts<T>());
}

template <typename T, typename Body>
void for_each_task(const DiagonalScan<T>& p, const Body& body) {
  LRA_CHECK(p.planes == 1 || p.planes == 2);
  LRA_CHECK(p.directions == 1 || p.directions == 2);
  LRA_CHECK(p.modes >= 1 && p.modes <= kMaxScanModes);
  const int64_t blocks = (p.channels + kScanChannels - 1) / kScanChannels;
  parallel_for_each(p.batch * blocks, [&](int64_t n) {
    [[maybe_unused]] const FlushDenormals flush;
    body(ScanTask{n / blocks, n % blocks * kScanChannels});
  });
}

}  // namespace

template <typename T>
void recurrence_forward(const DiagonalScan<T>& p, T* y) {
  const ScanParts<T> parts = choose_scan_parts<T>();
  for_each_task(p, [&](const ScanTask& task) { parts.forward(p, task, y); });
}

template <typename T>
void recurrence_backward(const DiagonalScanBackward<T>& p) {
  using W = Wide<T>;
  const ScanParts<T> parts = choose_scan_parts<T>();
  const int64_t count = scan_parameters(p.problem);
  const auto of_examples =
      std::make_unique_for_overwrite<W[]>(static_cast<size_t>(p.problem.batch * count));
  for_each_task(p.problem, [&](const ScanTask& task) {
    parts.backward(p, task, of_examples.get() + task.example * count);
  });
  sum_over_examples(of_examples.get(), p.problem.batch, count, p.grad_parameters);
}

template <typename T>
void diagonal_scan_forward(const DiagonalScan<T>& p, T* y) {
  is_faster_by_convolution(p) ? scan_forward_by_convolution(p, y) : recurrence_forward(p, y);
}

template <typename T>
void diagonal_scan_backward(const DiagonalScanBackward<T>& p) {
  is_faster_by_convolution(p.problem) ? scan_backward_by_convolution(p) : recurrence_backward(p);
}

template void recurrence_forward(const DiagonalScan<float>&, float*);
template void recurrence_forward(const DiagonalScan<double>&, double*);
template void recurrence_backward(const DiagonalScanBackward<float>&);
template void recurrence_backward(const DiagonalScanBackward<double>&);
template void diagonal_scan_forward(const DiagonalScan<float>&, float*);
template void diagonal_scan_forward(const DiagonalScan<Bf16>&, Bf16*);
template void diagonal_scan_forward(const DiagonalScan<double>&, double*);
template void diagonal_scan_backward(const DiagonalScanBackward<float>&);
template void diagonal_scan_backward(const DiagonalScanBackward<Bf16>&);
template void diagonal_scan_backward(const DiagonalScanBackward<double>&);

}  // namespace lra::kernels
