// The definition, one channel at a time.
#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "kernels/scan/selective_scan.h"

namespace lra::kernels::ref {
namespace {

// The states of one channel of a task, with all that a step needs.
template <typename T>
class Channel {
 public:
  using W = Wide<T>;
  using C = std::complex<W>;

  Channel(const SelectiveScan<T>& p, const SelectiveTask& task, int64_t lane)
      : rows(p, task), channel(task.channel + lane), p_(p), lane_(lane) {}

  const SelectiveRows rows;
  const int64_t channel;

  int64_t of_x(int64_t t) const { return rows.of_x(t) + lane_; }
  int64_t parameter(int64_t n) const { return n * p_.channels + channel; }
  W x(int64_t t) const { return static_cast<W>(p_.x[of_x(t)]); }
  W before_softplus(int64_t t) const {
    return static_cast<W>(p_.raw_dt[of_x(t)]) + p_.dt_bias[channel];
  }
  W dt(int64_t t) const {
    const W raw = before_softplus(t);
    return std::max(raw, W{0}) + std::log1p(std::exp(-std::abs(raw)));
  }
  W slope_of_dt(int64_t t) const { return 1 / (1 + std::exp(-before_softplus(t))); }
  W skip() const { return p_.skip ? p_.skip[channel] : W{0}; }
  C pole(int64_t n) const {
    return {p_.a[parameter(n)], p_.frequency ? p_.frequency[parameter(n)] : W{0}};
  }
  C decay(int64_t t, int64_t n) const { return std::exp(dt(t) * pole(n)); }
  C b(int64_t t, int64_t n) const {
    const C bias = complex(n, [&](int64_t i) { return p_.bias ? p_.bias[parameter(i)] : W{0}; });
    return bias + complex(n, [&](int64_t i) { return static_cast<W>(p_.b[rows.of_b(t) + i]); });
  }
  C c(int64_t t, int64_t n) const {
    return complex(n, [&](int64_t i) { return static_cast<W>(p_.c[rows.of_b(t) + i]); });
  }

 private:
  template <typename F>
  C complex(int64_t n, const F& number) const {
    return {number(n), p_.frequency ? number(p_.states + n) : W{0}};
  }

  const SelectiveScan<T>& p_;
  const int64_t lane_;
};

template <typename T>
void forward(const SelectiveScan<T>& p, const SelectiveTask& task, T* y, Wide<T>*) {
  using W = Wide<T>;
  for (int64_t lane = 0; lane < task.count; ++lane) {
    const Channel<T> channel(p, task, lane);
    std::vector<std::complex<W>> h(static_cast<size_t>(p.states));
    for (int64_t t = 0; t < p.length; ++t) {
      W sum = 0;
      if (t < channel.rows.length) {
        const W x = channel.x(t), u = channel.dt(t) * x;
        sum = channel.skip() * x;
        for (int64_t n = 0; n < p.states; ++n) {
          std::complex<W>& state = h[static_cast<size_t>(n)];
          state = channel.decay(t, n) * state + channel.b(t, n) * u;
          sum += (channel.c(t, n) * state).real();
        }
      }
      y[channel.of_x(t)] = static_cast<T>(sum);
    }
  }
}

// The shares of one state of a channel; adds to sums over states, of which dt is before its slope.
// Gradients of complex numbers are those of their parts, as a complex number.
template <typename T>
void state_back(const SelectiveScanBackward<T>& problem, const Channel<T>& channel, int64_t n,
                const SelectiveShares<Wide<T>>& shares, std::vector<Wide<T>>& grad_x,
                std::vector<Wide<T>>& grad_dt) {
  using W = Wide<T>;
  using C = std::complex<W>;
  const SelectiveScan<T>& p = problem.problem;
  const int64_t length = channel.rows.length;
  std::vector<C> decayed(static_cast<size_t>(length));  // exp(dt a) h[t - 1]
  C h = 0;
  for (int64_t t = 0; t < length; ++t) {
    decayed[static_cast<size_t>(t)] = channel.decay(t, n) * h;
    h = decayed[static_cast<size_t>(t)] + channel.b(t, n) * channel.dt(t) * channel.x(t);
  }
  C r = 0, of_a = 0, of_bias = 0;
  const auto add = [&](W* to, C x) {
    to[0] += x.real();
    if (p.frequency) to[p.states] += x.imag();
  };
  for (int64_t t = length - 1; t >= 0; --t) {
    const auto i = static_cast<size_t>(t);
    const W grad = static_cast<W>(problem.grad[channel.of_x(t)]), x = channel.x(t);
    const W dt = channel.dt(t);
    const C b = channel.b(t, n);
    r += grad * std::conj(channel.c(t, n));
    const int64_t share = channel.rows.place(t) * p.state_numbers() + n;
    add(shares.c + share, grad * std::conj(decayed[i] + b * dt * x));
    add(shares.b + share, r * dt * x);
    of_bias += r * dt * x;
    grad_x[i] += (std::conj(r) * b).real() * dt;
    grad_dt[i] += (std::conj(r) * (b * x + decayed[i] * channel.pole(n))).real();
    of_a += r * std::conj(decayed[i]) * dt;
    r *= std::conj(channel.decay(t, n));
  }
  for (int64_t plane = 0; plane < p.planes(); ++plane) {
    const int64_t at = channel.parameter(plane * p.states + n);
    shares.parameters[at] = plane == 0 ? of_a.real() : of_a.imag();
    shares.parameters[p.state_numbers() * p.channels + at] =
        plane == 0 ? of_bias.real() : of_bias.imag();
  }
}

template <typename T>
void channel_back(const SelectiveScanBackward<T>& problem, const Channel<T>& channel,
                  const SelectiveShares<Wide<T>>& shares) {
  using W = Wide<T>;
  const SelectiveScan<T>& p = problem.problem;
  const int64_t length = channel.rows.length;
  std::vector<W> grad_x(static_cast<size_t>(length)), grad_dt(grad_x);
  for (int64_t n = 0; n < p.states; ++n) {
    state_back(problem, channel, n, shares, grad_x, grad_dt);
  }
  W of_dt_bias = 0, of_skip = 0;
  for (int64_t t = 0; t < p.length; ++t) {
    W of_x = 0, of_dt = 0;
    if (t < length) {
      const W grad = static_cast<W>(problem.grad[channel.of_x(t)]);
      of_x = grad_x[static_cast<size_t>(t)] + channel.skip() * grad;
      of_dt = grad_dt[static_cast<size_t>(t)] * channel.slope_of_dt(t);
      of_dt_bias += of_dt;
      of_skip += grad * channel.x(t);
    }
    problem.grad_x[channel.of_x(t)] = static_cast<T>(of_x);
    problem.grad_dt[channel.of_x(t)] = static_cast<T>(of_dt);
  }
  W* const of_channels = shares.parameters + 2 * p.state_numbers() * p.channels + channel.channel;
  of_channels[0] = of_dt_bias;
  of_channels[p.channels] = of_skip;
}

template <typename T>
void backward(const SelectiveScanBackward<T>& problem, const SelectiveTask& task,
              const SelectiveShares<Wide<T>>& shares, const Wide<T>*) {
  using W = Wide<T>;
  const int64_t count = problem.problem.length * problem.problem.state_numbers();
  std::fill_n(shares.b, count, W{0});
  std::fill_n(shares.c, count, W{0});
  for (int64_t lane = 0; lane < task.count; ++lane) {
    channel_back(problem, Channel<T>(problem.problem, task, lane), shares);
  }
}

}  // namespace

template <typename T>
SelectiveScanParts<T> selective_scan_parts() {
  return {forward<T>, backward<T>};
}
template SelectiveScanParts<float> selective_scan_parts();
template SelectiveScanParts<Bf16> selective_scan_parts();
template SelectiveScanParts<double> selective_scan_parts();

}  // namespace lra::kernels::ref
