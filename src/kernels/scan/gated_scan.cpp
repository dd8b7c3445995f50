#include "kernels/scan/gated_scan.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/parallel.h"

namespace lra::kernels {
namespace {

constexpr int64_t kMostChannels = 128;  // of a task, whose states stay in the cache

// Neighboring channels of an example, all of one direction.
struct ChannelRun {
  int64_t first_row = 0, length = 0, channel = 0, count = 0;
  bool reversed = false;

  // The first of the channels at a time; times from `length` on are padding.
  template <typename T>
  int64_t at(const GatedScan<T>& p, int64_t time) const {
    const int64_t place = reversed && time < length ? length - 1 - time : time;
    return (first_row + place) * p.channels + channel;
  }
};

template <typename T, typename Body>
void for_each_run_of_channels(const GatedScan<T>& p, const Body& body) {
  const int64_t reversed = p.reversed_channels, forward = p.channels - reversed;
  LRA_CHECK(reversed >= 0 && forward >= 0);
  const auto tasks = [](int64_t channels) {
    return (channels + kMostChannels - 1) / kMostChannels;
  };
  const int64_t of_forward = tasks(forward), of_example = of_forward + tasks(reversed);
  parallel_for_each(p.batch * of_example, [&](int64_t n) {
    const int64_t example = n / of_example, task = n % of_example;
    const bool is_reversed = task >= of_forward;
    const int64_t first = (is_reversed ? task - of_forward : task) * kMostChannels;
    body(ChannelRun{.first_row = example * p.length,
                    .length = p.lengths ? p.lengths[example] : p.length,
                    .channel = is_reversed ? forward + first : first,
                    .count = std::min(kMostChannels, (is_reversed ? reversed : forward) - first),
                    .reversed = is_reversed});
  });
}

template <typename T, typename U>
void fill_padding(const GatedScan<T>& p, const ChannelRun& run, U* to) {
  for (int64_t t = run.length; t < p.length; ++t)
    std::fill_n(to + run.at(p, t), run.count, U(0.0f));
}

}  // namespace

template <typename T>
void gated_scan_forward(const GatedScan<T>& p, T* h) {
  using W = Wide<T>;
  for_each_run_of_channels(p, [&](const ChannelRun& run) {
    std::array<W, kMostChannels> state{};
    for (int64_t t = 0; t < run.length; ++t) {
      const int64_t at = run.at(p, t);
      W* const now = state.data();
#pragma omp simd
      for (int64_t c = 0; c < run.count; ++c) {
        now[c] = p.a[at + c] * now[c] + static_cast<W>(p.v[at + c]);
        h[at + c] = static_cast<T>(now[c]);
      }
    }
    fill_padding(p, run, h);
  });
}

template <typename T>
void gated_scan_backward(const GatedScanBackward<T>& problem) {
  using W = Wide<T>;
  const GatedScan<T>& p = problem.problem;
  for_each_run_of_channels(p, [&](const ChannelRun& run) {
    std::array<W, kMostChannels> later{};  // a[t + 1] r[t + 1]
    for (int64_t t = run.length - 1; t >= 0; --t) {
      const int64_t at = run.at(p, t), before = run.at(p, std::max<int64_t>(0, t - 1));
      const W has_before = t > 0;
      W* const after = later.data();
#pragma omp simd
      for (int64_t c = 0; c < run.count; ++c) {
        const W r = static_cast<W>(problem.grad[at + c]) + after[c];
        problem.grad_v[at + c] = static_cast<T>(r);
        problem.grad_a[at + c] = has_before * r * static_cast<W>(problem.h[before + c]);
        after[c] = p.a[at + c] * r;
      }
    }
    fill_padding(p, run, problem.grad_a);
    fill_padding(p, run, problem.grad_v);
  });
}

template void gated_scan_forward(const GatedScan<float>&, float*);
template void gated_scan_forward(const GatedScan<Bf16>&, Bf16*);
template void gated_scan_forward(const GatedScan<double>&, double*);
template void gated_scan_backward(const GatedScanBackward<float>&);
template void gated_scan_backward(const GatedScanBackward<Bf16>&);
template void gated_scan_backward(const GatedScanBackward<double>&);

}  // namespace lra::kernels
