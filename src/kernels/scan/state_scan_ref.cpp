// The definition, one state at a time.
#include <algorithm>
#include <complex>

#include "kernels/scan/state_scan.h"

namespace lra::kernels::ref {
namespace {

// A complex number whose imaginary part is `states` elements after the real one.
template <typename W, typename T>
std::complex<W> planes_at(const T* from, int64_t states) {
  return {static_cast<W>(from[0]), static_cast<W>(from[states])};
}
template <typename W, typename T>
void put_planes(T* to, int64_t states, std::complex<W> z) {
  to[0] = static_cast<T>(z.real());
  to[states] = static_cast<T>(z.imag());
}

// body(state, rows of a direction) for all states of a task and directions.
template <typename T, typename Body>
void for_each_state(const StateScan<T>& p, const StateTask& task, const Body& body) {
  for (int64_t n = task.state; n < std::min(task.state + kScanStates, p.states); ++n) {
    for (int64_t d = 0; d < p.directions; ++d) {
      body(n, d, StateRows<T>(p, task.example, d));
    }
  }
}

template <typename T>
void states_forward(const StateScan<T>& p, const StateTask& task, T* x) {
  using W = Wide<T>;
  for_each_state(p, task, [&](int64_t n, int64_t, const StateRows<T>& rows) {
    const auto a = planes_at<W>(p.a + n, p.states);
    std::complex<W> state = 0;
    for (int64_t t = 0; t < p.length; ++t) {
      state = t < rows.length ? a * state + planes_at<W>(p.v + rows.of_v(t) + n, p.states) : W{0};
      put_planes(x + rows.of_x(t) + n, p.states, state);
    }
  });
}

template <typename T>
void states_backward(const StateScanBackward<T>& problem, const StateTask& task, Wide<T>* grads) {
  using W = Wide<T>;
  const StateScan<T>& p = problem.problem;
  for_each_state(p, task, [&](int64_t n, int64_t direction, const StateRows<T>& rows) {
    const auto a = planes_at<W>(p.a + n, p.states);
    std::complex<W> r = 0, of_a = 0;
    for (int64_t t = p.length - 1; t >= 0; --t) {
      T* const grad_v = problem.grad_v + rows.of_v(t) + n;
      if (t >= rows.length) {
        put_planes<W>(grad_v, p.states, 0);
        continue;
      }
      r = std::conj(a) * r + planes_at<W>(problem.grad + rows.of_x(t) + n, p.states);
      put_planes(grad_v, p.states, direction == 0 ? r : r + planes_at<W>(grad_v, p.states));
      if (t > 0) of_a += r * std::conj(planes_at<W>(problem.x + rows.of_x(t - 1) + n, p.states));
    }
    put_planes(grads + n, p.states,
               direction == 0 ? of_a : of_a + planes_at<W>(grads + n, p.states));
  });
}

}  // namespace

template <typename T>
StateScanParts<T> state_scan_parts() {
  return {states_forward<T>, states_backward<T>};
}
template StateScanParts<float> state_scan_parts();
template StateScanParts<Bf16> state_scan_parts();
template StateScanParts<double> state_scan_parts();

}  // namespace lra::kernels::ref
