#include "kernels/scan/matrix_scan.h"

#include "base/error.h"
#include "base/parallel.h"

namespace lra::kernels {
namespace {

template <typename T>
MatrixScanParts<T> choose_matrix_scan_parts(const MatrixScan<T>& p) {
  LRA_CHECK(p.decays == 1 || p.decays == p.keys);
  LRA_CHECK(p.beta != nullptr || !p.delta || p.batch * p.length * p.heads == 0);
  LRA_CHECK(p.heads == 0 || (p.key_heads > 0 && p.heads % p.key_heads == 0));
  LRA_CHECK(p.reversed_heads >= 0 && p.reversed_heads <= p.heads);
  LRA_RETURN_BEST(T, Op::kMatrixScan, matrix_scan_parts<T>());
}

}  // namespace

template <typename T>
void matrix_scan_forward(const MatrixScan<T>& p, T* o) {
  const MatrixScanParts<T> parts = choose_matrix_scan_parts(p);
  parallel_for_each(p.batch * p.heads, [&](int64_t task) { parts.forward(p, task, o); });
}

template <typename T>
void matrix_scan_backward(const MatrixScanBackward<T>& p) {
  const MatrixScanParts<T> parts = choose_matrix_scan_parts(p.problem);
  parallel_for_each(p.problem.batch * p.problem.heads,
                    [&](int64_t task) { parts.backward(p, task); });
}

template void matrix_scan_forward(const MatrixScan<float>&, float*);
template void matrix_scan_forward(const MatrixScan<Bf16>&, Bf16*);
template void matrix_scan_forward(const MatrixScan<double>&, double*);
template void matrix_scan_backward(const MatrixScanBackward<float>&);
template void matrix_scan_backward(const MatrixScanBackward<Bf16>&);
template void matrix_scan_backward(const MatrixScanBackward<double>&);

}  // namespace lra::kernels
