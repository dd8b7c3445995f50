// Up to 64 states at a time, in registers along the whole sequence: the loops are bound by the
// memory of inputs and states.
#include <algorithm>

#include "kernels/scan/complex_vectors.h"
#include "kernels/scan/state_scan.h"

namespace lra::kernels::LRA_ISA {
namespace {

using C = Complex<2>;

// Vectors of states that a loop advances, as many as fit the registers.
constexpr int kMostVectors = kIsa == Isa::kAvx512 ? 4 : 1;

// kVectors complex vectors of a row, from its first state on.
template <typename Mask>
struct Planes {
  int64_t states;
  Mask lanes;

  template <typename T>
  C load(const T* from, int n) const {
    from += n * kLanes;
    return {load_lanes(lanes, from), load_lanes(lanes, from + states)};
  }
  template <typename T>
  void store(T* to, int n, const C& z) const {
    to += n * kLanes;
    store_lanes(to, lanes, z.re);
    store_lanes(to + states, lanes, z.im);
  }
};

// Calls body(first state, planes, integral_constant of vectors) for all states of a task.
template <typename F>
void for_each_states(int64_t first, int64_t states, const F& body) {
  const int64_t count = std::min(kScanStates, states - first), whole = count / kLanes;
  for_each_group<kMostVectors>(0, whole, [&](int64_t n, auto vectors) {
    body(first + n * kLanes, Planes<AllLanes>{states, {}}, vectors);
  });
  if (count % kLanes == 0) return;
  body(first + whole * kLanes, Planes<Lanes>{states, lanes_between(0, count % kLanes)},
       std::integral_constant<int, 1>{});
}

template <int kVectors, typename T, typename Mask>
void scan_states_forward(const StateScan<T>& p, const StateRows<T>& rows, int64_t first,
                         const Planes<Mask>& planes, T* x) {
  C a[kVectors], state[kVectors];
  for (int n = 0; n < kVectors; ++n) {
    a[n] = planes.load(p.a + first, n);
    state[n] = {zeros(), zeros()};
  }
  for (int64_t t = 0; t < rows.length; ++t) {
    const T* const v = p.v + rows.of_v(t) + first;
    T* const to = x + rows.of_x(t) + first;
#pragma GCC unroll 4
    for (int n = 0; n < kVectors; ++n) {
      state[n].advance(a[n], planes.load(v, n));
      planes.store(to, n, state[n]);
    }
  }
  for (int64_t t = rows.length; t < p.length; ++t) {
    for (int n = 0; n < kVectors; ++n)
      planes.store(x + rows.of_x(t) + first, n, {zeros(), zeros()});
  }
}

template <int kVectors, typename T, typename Mask>
class BackwardStates {
 public:
  BackwardStates(const StateScanBackward<T>& p, const StateRows<T>& rows, int64_t first,
                 const Planes<Mask>& planes)
      : p_(p), rows_(rows), first_(first), planes_(planes) {
    for (int n = 0; n < kVectors; ++n) {
      a_[n] = planes.load(p.problem.a + first, n);
      r_[n] = of_a_[n] = {zeros(), zeros()};
    }
  }

  // With kAdd, adds to both gradients, which already contain those of another direction.
  template <bool kAdd>
  void run(float* grads) {
    for (int64_t end = rows_.length; end > 0; end -= std::min(end, kScanChunk)) {
      walk<kAdd>(std::max<int64_t>(0, end - kScanChunk), end);
    }
    for (int n = 0; n < kVectors; ++n) {
      put<kAdd>(grads + first_, n, of_a_[n]);
      for (int64_t t = rows_.length; t < p_.problem.length; ++t) {
        planes_.store(p_.grad_v + rows_.of_v(t) + first_, n, {zeros(), zeros()});
      }
    }
  }

 private:
  template <bool kAdd, typename U>
  void put(U* to, int n, C z) const {
    if constexpr (kAdd) {
      const C before = planes_.load(to, n);
      z = {before.re + z.re, before.im + z.im};
    }
    planes_.store(to, n, z);
  }

  template <bool kAdd>
  void walk(int64_t begin, int64_t end) {
    C sums[kVectors];
    for (C& sum : sums) sum = {zeros(), zeros()};
    for (int64_t t = end - 1; t >= begin; --t) {
      const T* const grad = p_.grad + rows_.of_x(t) + first_;
      const T* const before = p_.x + rows_.of_x(std::max<int64_t>(0, t - 1)) + first_;
      T* const grad_v = p_.grad_v + rows_.of_v(t) + first_;
#pragma GCC unroll 4
      for (int n = 0; n < kVectors; ++n) {
        r_[n].advance_conjugate(a_[n], planes_.load(grad, n));
        put<kAdd>(grad_v, n, r_[n]);
        if (t > 0) sums[n].add_product_conjugate(r_[n], planes_.load(before, n));
      }
    }
    for (int n = 0; n < kVectors; ++n) {
      of_a_[n] = {of_a_[n].re + sums[n].re, of_a_[n].im + sums[n].im};
    }
  }

  const StateScanBackward<T>& p_;
  const StateRows<T>& rows_;
  const int64_t first_;
  const Planes<Mask> planes_;
  C a_[kVectors], r_[kVectors], of_a_[kVectors];
};

template <typename T>
void states_forward(const StateScan<T>& p, const StateTask& task, T* x) {
  for (int64_t d = 0; d < p.directions; ++d) {
    const StateRows<T> rows(p, task.example, d);
    for_each_states(task.state, p.states, [&](int64_t first, const auto& planes, auto vectors) {
      scan_states_forward<vectors>(p, rows, first, planes, x);
    });
  }
}

template <typename T>
void states_backward(const StateScanBackward<T>& p, const StateTask& task, float* grads) {
  for (int64_t d = 0; d < p.problem.directions; ++d) {
    const StateRows<T> rows(p.problem, task.example, d);
    for_each_states(task.state, p.problem.states,
                    [&]<typename Mask>(int64_t first, const Planes<Mask>& planes, auto vectors) {
                      BackwardStates<vectors, T, Mask> states(p, rows, first, planes);
                      d == 0 ? states.template run<false>(grads) : states.template run<true>(grads);
                    });
  }
}

}  // namespace

template <typename T>
StateScanParts<T> state_scan_parts() {
  return {states_forward<T>, states_backward<T>};
}
template StateScanParts<float> state_scan_parts();
template StateScanParts<Bf16> state_scan_parts();

}  // namespace lra::kernels::LRA_ISA
