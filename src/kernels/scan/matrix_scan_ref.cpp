// The definition, one position after another, and its derivative.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/scan/matrix_scan.h"

namespace lra::kernels::ref {
namespace {

// A head of an example, whose matrices are [K, V].
template <typename T>
class MatrixHead {
 public:
  using W = Wide<T>;
  using Matrix = std::vector<W>;

  MatrixHead(const MatrixScan<T>& p, int64_t task)
      : rows(p, task),
        decayed(static_cast<size_t>(p.keys * p.values)),
        e(static_cast<size_t>(p.values)),
        u(e),
        p_(p) {}

  W decay(int64_t t, int64_t n) const {
    return std::exp(p_.log_decay[rows.at(t, p_.decays) + (p_.decays == 1 ? 0 : n)]);
  }
  W q(int64_t t, int64_t n) const { return static_cast<W>(p_.q[rows.at_key(t, p_.q_row) + n]); }
  W k(int64_t t, int64_t n) const { return static_cast<W>(p_.k[rows.at_key(t, p_.k_row) + n]); }
  W r(int64_t t, int64_t n) const {
    return p_.r ? static_cast<W>(p_.r[rows.at_key(t, p_.r_row) + n]) : k(t, n);
  }
  W beta(int64_t t) const { return p_.beta[rows.at(t, 1)]; }

  // From the state before position t to the one behind it.
  void step(int64_t t, const Matrix& before, Matrix& after) {
    for_each([&](int64_t n, int64_t m, size_t at) {
      decayed[at] = decay(t, n) * before[at];
      if (n == 0) e[static_cast<size_t>(m)] = static_cast<W>(p_.v[rows.at_value(t, p_.v_row) + m]);
    });
    if (p_.delta) {
      for_each([&](int64_t n, int64_t m, size_t at) {
        e[static_cast<size_t>(m)] -= decayed[at] * r(t, n);
      });
    }
    for (size_t m = 0; m < e.size(); ++m) u[m] = p_.beta ? beta(t) * e[m] : e[m];
    for_each([&](int64_t n, int64_t m, size_t at) {
      after[at] = decayed[at] + k(t, n) * u[static_cast<size_t>(m)];
    });
  }

  template <typename Body>
  void for_each(const Body& body) const {
    for (int64_t n = 0; n < p_.keys; ++n) {
      for (int64_t m = 0; m < p_.values; ++m) body(n, m, static_cast<size_t>(n * p_.values + m));
    }
  }

  const MatrixScanRows rows;
  Matrix decayed, e, u;  // of the last step

 private:
  const MatrixScan<T>& p_;
};

template <typename T>
void forward(const MatrixScan<T>& p, int64_t task, T* o) {
  using W = Wide<T>;
  MatrixHead<T> head(p, task);
  std::vector<W> state(head.decayed);
  for (int64_t t = 0; t < p.length; ++t) {
    std::vector<W> row(head.e.size());
    if (t < head.rows.length) {
      head.step(t, state, state);
      head.for_each([&](int64_t n, int64_t m, size_t at) {
        row[static_cast<size_t>(m)] += state[at] * head.q(t, n);
      });
    }
    for (size_t m = 0; m < row.size(); ++m) {
      o[head.rows.at(t, p.values) + static_cast<int64_t>(m)] = static_cast<T>(row[m]);
    }
  }
}

// The gradients of one position, from that of the state behind it to that of the state before.
template <typename T>
void step_back(const MatrixScanBackward<T>& problem, MatrixHead<T>& head, int64_t t,
               const std::vector<Wide<T>>& before, const std::vector<Wide<T>>& after,
               std::vector<Wide<T>>& grad) {
  using W = Wide<T>;
  const MatrixScan<T>& p = problem.problem;
  const auto row = [](int64_t count) { return std::vector<W>(static_cast<size_t>(count)); };
  std::vector<W> of_q = row(p.keys), of_k = row(p.keys), of_u = row(p.values), of_a = row(p.decays);
  std::vector<W> of_r = row(p.keys);
  W of_beta = 0;
  head.for_each([&](int64_t n, int64_t m, size_t at) {
    const W g = static_cast<W>(problem.grad[head.rows.at(t, p.values) + m]);
    const auto key = static_cast<size_t>(n), value = static_cast<size_t>(m);
    of_q[key] += after[at] * g;
    grad[at] += head.q(t, n) * g;
    of_u[value] += grad[at] * head.k(t, n);
    of_k[key] += grad[at] * head.u[value];
  });
  if (p.beta) {
    for (size_t m = 0; m < of_u.size(); ++m) {
      of_beta += of_u[m] * head.e[m];
      of_u[m] *= head.beta(t);
    }
    problem.grad_beta[head.rows.at(t, 1)] = of_beta;
  }
  if (p.delta) {
    head.for_each([&](int64_t n, int64_t m, size_t at) {
      const auto key = static_cast<size_t>(n), value = static_cast<size_t>(m);
      grad[at] -= head.r(t, n) * of_u[value];
      (p.r ? of_r : of_k)[key] -= head.decayed[at] * of_u[value];
    });
  }
  head.for_each([&](int64_t n, int64_t, size_t at) {
    of_a[p.decays == 1 ? 0 : static_cast<size_t>(n)] += grad[at] * head.decay(t, n) * before[at];
    grad[at] *= head.decay(t, n);
  });
  const auto write = [&](const std::vector<W>& from, T* to) {
    to += head.rows.at(t, static_cast<int64_t>(from.size()));
    std::transform(from.begin(), from.end(), to, [](W x) { return static_cast<T>(x); });
  };
  write(of_q, problem.grad_q);
  write(of_k, problem.grad_k);
  if (p.r) write(of_r, problem.grad_r);
  write(of_u, problem.grad_v);
  std::copy(of_a.begin(), of_a.end(), problem.grad_log_decay + head.rows.at(t, p.decays));
}

template <typename T>
void backward(const MatrixScanBackward<T>& problem, int64_t task) {
  using W = Wide<T>;
  const MatrixScan<T>& p = problem.problem;
  MatrixHead<T> head(p, task);
  std::vector<std::vector<W>> states(static_cast<size_t>(head.rows.length) + 1, head.decayed);
  for (int64_t t = 0; t < head.rows.length; ++t) {
    head.step(t, states[static_cast<size_t>(t)], states[static_cast<size_t>(t) + 1]);
  }
  std::vector<W> grad(head.decayed.size());
  for (int64_t t = head.rows.length - 1; t >= 0; --t) {
    const auto i = static_cast<size_t>(t);
    std::vector<W> again(head.decayed.size());
    head.step(t, states[i], again);
    step_back(problem, head, t, states[i], states[i + 1], grad);
  }
  for (int64_t t = head.rows.length; t < p.length; ++t) {
    std::fill_n(problem.grad_q + head.rows.at(t, p.keys), p.keys, T(0.0f));
    std::fill_n(problem.grad_k + head.rows.at(t, p.keys), p.keys, T(0.0f));
    if (p.r) std::fill_n(problem.grad_r + head.rows.at(t, p.keys), p.keys, T(0.0f));
    std::fill_n(problem.grad_v + head.rows.at(t, p.values), p.values, T(0.0f));
    std::fill_n(problem.grad_log_decay + head.rows.at(t, p.decays), p.decays, W{0});
    if (p.beta) problem.grad_beta[head.rows.at(t, 1)] = 0;
  }
}

}  // namespace

template <typename T>
MatrixScanParts<T> matrix_scan_parts() {
  return {forward<T>, backward<T>};
}
template MatrixScanParts<float> matrix_scan_parts();
template MatrixScanParts<Bf16> matrix_scan_parts();
template MatrixScanParts<double> matrix_scan_parts();

}  // namespace lra::kernels::ref
