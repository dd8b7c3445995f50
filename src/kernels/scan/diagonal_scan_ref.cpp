// The definition, one channel and one state at a time.
#include <algorithm>
#include <complex>
#include <vector>

#include "kernels/scan/diagonal_scan.h"

namespace lra::kernels::ref {
namespace {

// One channel of one example. Position t of a direction is `place(t)` of the sequence; the first
// direction reads an input at its own position, the second one position further on.
template <typename T>
class Channel {
 public:
  using W = Wide<T>;
  using Complex = std::complex<W>;

  Channel(const DiagonalScan<T>& p, int64_t example, int64_t channel)
      : length(p.lengths ? p.lengths[example] : p.length),
        p_(p),
        first_(example * p.length * p.channels + channel),
        channel_(channel) {}

  int64_t at(int64_t l) const { return first_ + l * p_.channels; }
  int64_t place(int64_t direction, int64_t t) const { return direction ? length - 1 - t : t; }
  // Offset of parameter `mode` of plane 0 in `a`, or in c from `direction` on.
  int64_t parameter(int64_t mode, int64_t direction = 0) const {
    return (direction * p_.planes * p_.modes + mode) * p_.channels + channel_;
  }
  int64_t plane_stride() const { return p_.modes * p_.channels; }
  Complex complex(const W* from, int64_t i) const {
    return {from[i], p_.planes == 2 ? from[i + plane_stride()] : W{0}};
  }

  const int64_t length;

 private:
  const DiagonalScan<T>& p_;
  const int64_t first_, channel_;
};

template <typename T, typename Body>
void for_each_channel(const DiagonalScan<T>& p, const ScanTask& task, const Body& body) {
  const int64_t end = std::min(task.channel + kScanChannels, p.channels);
  for (int64_t h = task.channel; h < end; ++h) body(h, Channel<T>(p, task.example, h));
}

template <typename T>
void forward(const DiagonalScan<T>& p, const ScanTask& task, T* y) {
  using W = Wide<T>;
  for_each_channel(p, task, [&](int64_t h, const Channel<T>& channel) {
    std::vector<W> sums(static_cast<size_t>(p.length));
    for (int64_t l = 0; p.skip && l < channel.length; ++l) {
      sums[static_cast<size_t>(l)] = p.skip[h] * static_cast<W>(p.x[channel.at(l)]);
    }
    for (int64_t d = 0; d < p.directions; ++d) {
      for (int64_t n = 0; n < p.modes; ++n) {
        const auto a = channel.complex(p.a, channel.parameter(n));
        const auto c = channel.complex(p.c, channel.parameter(n, d));
        std::complex<W> state = 0;
        for (int64_t t = 0; t < channel.length; ++t) {
          const int64_t l = channel.place(d, t);
          if (d == 1) sums[static_cast<size_t>(l)] += (c * state).real();
          state = a * state + static_cast<W>(p.x[channel.at(l)]);
          if (d == 0) sums[static_cast<size_t>(l)] += (c * state).real();
        }
      }
    }
    for (int64_t l = 0; l < p.length; ++l) y[channel.at(l)] = sums[static_cast<size_t>(l)];
  });
}

// Backward recurrence r[t] = g[t] + conj(a) r[t + 1], where g[t] is the gradient of the value that
// s[t] is read for. The gradient of x[t] is Re(conj(c) r[t]), that of c is sum x[t] r[t], and that
// of a is conj(c) sum r[t] conj(s[t-1]).
template <typename T>
void backward(const DiagonalScanBackward<T>& problem, const ScanTask& task, Wide<T>* grads) {
  using W = Wide<T>;
  const DiagonalScan<T>& p = problem.problem;
  for_each_channel(p, task, [&](int64_t h, const Channel<T>& channel) {
    std::vector<W> grad_x(static_cast<size_t>(p.length));
    std::vector<std::complex<W>> before(static_cast<size_t>(p.length));
    W* const grad_c = grads + p.planes * channel.plane_stride();
    W& grad_skip = grads[(1 + p.directions) * p.planes * channel.plane_stride() + h];
    grad_skip = 0;
    for (int64_t l = 0; l < channel.length; ++l) {
      const W x = p.x[channel.at(l)], grad = problem.grad[channel.at(l)];
      grad_skip += x * grad;
      if (p.skip) grad_x[static_cast<size_t>(l)] = p.skip[h] * grad;
    }
    for (int64_t n = 0; n < p.modes; ++n) {
      const auto a = channel.complex(p.a, channel.parameter(n));
      std::complex<W> of_a = 0;
      for (int64_t d = 0; d < p.directions; ++d) {
        const auto c = channel.complex(p.c, channel.parameter(n, d));
        std::complex<W> state = 0;
        for (int64_t t = 0; t < channel.length; ++t) {
          before[static_cast<size_t>(t)] = state;
          state = a * state + static_cast<W>(p.x[channel.at(channel.place(d, t))]);
        }
        std::complex<W> r = 0, of_c = 0, products = 0;
        for (int64_t t = channel.length - 1; t >= 0; --t) {
          const int64_t l = channel.place(d, t), read = t + d;
          r *= std::conj(a);
          if (read < channel.length)
            r += static_cast<W>(problem.grad[channel.at(channel.place(d, read))]);
          grad_x[static_cast<size_t>(l)] += (std::conj(c) * r).real();
          of_c += static_cast<W>(p.x[channel.at(l)]) * r;
          products += r * std::conj(before[static_cast<size_t>(t)]);
        }
        of_a += std::conj(c) * products;
        const int64_t i = channel.parameter(n, d);
        grad_c[i] = of_c.real();
        if (p.planes == 2) grad_c[i + channel.plane_stride()] = of_c.imag();
      }
      const int64_t i = channel.parameter(n);
      grads[i] = of_a.real();
      if (p.planes == 2) grads[i + channel.plane_stride()] = of_a.imag();
    }
    for (int64_t l = 0; l < p.length; ++l) {
      problem.grad_x[channel.at(l)] = grad_x[static_cast<size_t>(l)];
    }
  });
}

}  // namespace

template <typename T>
ScanParts<T> scan_parts() {
  return {forward<T>, backward<T>};
}
template ScanParts<float> scan_parts();
template ScanParts<Bf16> scan_parts();
template ScanParts<double> scan_parts();

}  // namespace lra::kernels::ref
