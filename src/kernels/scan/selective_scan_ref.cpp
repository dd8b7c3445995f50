// The definition, one channel at a time.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/scan/selective_scan.h"

namespace lra::kernels::ref {
namespace {

// The states of one channel of a task, with all that a step needs.
template <typename T>
class Channel {
 public:
  using W = Wide<T>;

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
  W decay(int64_t t, int64_t n) const { return std::exp(dt(t) * p_.a[parameter(n)]); }
  W b(int64_t t, int64_t n) const {
    return static_cast<W>(p_.b[rows.of_b(t) + n]) + (p_.bias ? p_.bias[parameter(n)] : W{0});
  }
  W c(int64_t t, int64_t n) const { return static_cast<W>(p_.c[rows.of_b(t) + n]); }

 private:
  const SelectiveScan<T>& p_;
  const int64_t lane_;
};

template <typename T>
void forward(const SelectiveScan<T>& p, const SelectiveTask& task, T* y, Wide<T>*) {
  using W = Wide<T>;
  for (int64_t lane = 0; lane < task.count; ++lane) {
    const Channel<T> channel(p, task, lane);
    std::vector<W> h(static_cast<size_t>(p.states));
    for (int64_t t = 0; t < p.length; ++t) {
      W sum = 0;
      if (t < channel.rows.length) {
        const W x = channel.x(t), u = channel.dt(t) * x;
        sum = channel.skip() * x;
        for (int64_t n = 0; n < p.states; ++n) {
          W& state = h[static_cast<size_t>(n)];
          state = channel.decay(t, n) * state + channel.b(t, n) * u;
          sum += channel.c(t, n) * state;
        }
      }
      y[channel.of_x(t)] = static_cast<T>(sum);
    }
  }
}

// The shares of one state of a channel; adds to sums over states, of which dt is before its slope.
template <typename T>
void state_back(const SelectiveScanBackward<T>& problem, const Channel<T>& channel, int64_t n,
                const SelectiveShares<Wide<T>>& shares, std::vector<Wide<T>>& grad_x,
                std::vector<Wide<T>>& grad_dt) {
  using W = Wide<T>;
  const SelectiveScan<T>& p = problem.problem;
  const int64_t length = channel.rows.length, at = channel.parameter(n);
  std::vector<W> decayed(static_cast<size_t>(length));  // exp(dt a) h[t - 1]
  W h = 0;
  for (int64_t t = 0; t < length; ++t) {
    decayed[static_cast<size_t>(t)] = channel.decay(t, n) * h;
    h = decayed[static_cast<size_t>(t)] + channel.b(t, n) * channel.dt(t) * channel.x(t);
  }
  W r = 0, of_a = 0, of_bias = 0;
  for (int64_t t = length - 1; t >= 0; --t) {
    const auto i = static_cast<size_t>(t);
    const W grad = static_cast<W>(problem.grad[channel.of_x(t)]), x = channel.x(t);
    const W dt = channel.dt(t), b = channel.b(t, n);
    r += grad * channel.c(t, n);
    const int64_t share = channel.rows.place(t) * p.states + n;
    shares.c[share] += grad * (decayed[i] + b * dt * x);
    shares.b[share] += r * dt * x;
    of_bias += r * dt * x;
    grad_x[i] += r * b * dt;
    grad_dt[i] += r * (b * x + decayed[i] * p.a[at]);
    of_a += r * decayed[i] * dt;
    r *= channel.decay(t, n);
  }
  shares.parameters[at] = of_a;
  shares.parameters[p.states * p.channels + at] = of_bias;
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
  W* const of_channels = shares.parameters + 2 * p.states * p.channels + channel.channel;
  of_channels[0] = of_dt_bias;
  of_channels[p.channels] = of_skip;
}

template <typename T>
void backward(const SelectiveScanBackward<T>& problem, const SelectiveTask& task,
              const SelectiveShares<Wide<T>>& shares, const Wide<T>*) {
  using W = Wide<T>;
  const int64_t count = problem.problem.length * problem.problem.states;
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
