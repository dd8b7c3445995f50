// Sixteen channels at a time: 64 positions are copied to rows of sixteen floats, and groups of
// states, in registers, pass over them.
#include <algorithm>
#include <numbers>

#include "kernels/scan/selective_scan_states.h"

namespace lra::kernels::LRA_ISA {
namespace {

static_assert(kScanChunk == kSelectiveChunk);

// One task: its channels of the problem's arrays.
template <typename T, typename Mask>
class Task {
 public:
  Task(const SelectiveScan<T>& p, const SelectiveTask& task, Mask lanes)
      : p_(p), task_(task), lanes_(lanes), rows_(p, task) {}

  int64_t length() const { return rows_.length; }
  int64_t chunks() const { return (rows_.length + kScanChunk - 1) / kScanChunk; }
  int64_t count(int64_t begin) const { return std::min(kScanChunk, rows_.length - begin); }

  // Rows [begin, begin + count(begin)) of x and dt; dt with its slope for the backward pass.
  void read(int64_t begin, const Scratch& s) const {
    const Floats dt_bias = load_lanes(lanes_, p_.dt_bias + task_.channel);
    for (int64_t t = 0; t < count(begin); ++t) {
      const int64_t at = rows_.of_x(begin + t);
      store(s.x + t * kLanes, load_lanes(lanes_, p_.x + at));
      const Softplus dt(load_lanes(lanes_, p_.raw_dt + at) + dt_bias);
      store(s.dt + t * kLanes, dt.value);
      if (s.slope) store(s.slope + t * kLanes, dt.slope);
    }
  }
  void read_rows(const T* from, int64_t begin, float* rows) const {
    for (int64_t t = 0; t < count(begin); ++t) {
      store(rows + t * kLanes, load_lanes(lanes_, from + rows_.of_x(begin + t)));
    }
  }
  void write_rows(const float* rows, int64_t begin, T* to) const {
    for (int64_t t = 0; t < count(begin); ++t) {
      store_lanes(to + rows_.of_x(begin + t), lanes_, load(rows + t * kLanes));
    }
  }
  void write_padding(T* to) const {
    for (int64_t t = rows_.length; t < p_.length; ++t)
      store_lanes(to + rows_.of_x(t), lanes_, zeros());
  }
  // to = skip from
  void start_rows(const float* from, int64_t begin, float* to) const {
    const Floats skip = p_.skip ? load_lanes(lanes_, p_.skip + task_.channel) : zeros();
    for (int64_t t = 0; t < count(begin); ++t) {
      store(to + t * kLanes, skip * load(from + t * kLanes));
    }
  }

  // a log2(e), frequencies in turns, and bias.
  void read_parameters(const Scratch& s) const {
    constexpr auto kTurns = static_cast<float>(std::numbers::inv_pi / 2);
    for_each_number([&](int64_t plane, int64_t at, int64_t vector) {
      const Floats part =
          plane == 0
              ? load_lanes(lanes_, p_.a + at) * broadcast(std::numbers::log2e_v<float>)
              : load_lanes(lanes_, p_.frequency + at - p_.states * p_.channels) * broadcast(kTurns);
      store(s.a + vector, part);
      store(s.bias + vector, p_.bias ? load_lanes(lanes_, p_.bias + at) : zeros());
    });
  }
  // [states, planes, 16] to a gradient [planes, states, channels].
  void write_states(const float* from, float* to) const {
    for_each_number([&](int64_t, int64_t at, int64_t vector) {
      store_lanes(to + at, lanes_, load(from + vector));
    });
  }
  void write_channels(Floats x, float* to) const { store_lanes(to + task_.channel, lanes_, x); }

  StateRows<const T> state_rows(int64_t begin) const {
    const int64_t at = rows_.of_b(begin), row = p_.groups * p_.state_numbers();
    return {p_.b + at, p_.c + at, p_.reversed ? -row : row, p_.states};
  }
  StateRows<float> share_rows(const SelectiveShares<float>& shares, int64_t begin) const {
    const int64_t row = p_.state_numbers(), at = rows_.place(begin) * row;
    return {shares.b + at, shares.c + at, p_.reversed ? -row : row, p_.states};
  }

 private:
  // Calls body(plane, place in [planes, states, channels], place in [states, planes, 16]).
  template <typename F>
  void for_each_number(const F& body) const {
    for (int64_t plane = 0; plane < p_.planes(); ++plane) {
      for (int64_t n = 0; n < p_.states; ++n) {
        body(plane, (plane * p_.states + n) * p_.channels + task_.channel,
             (n * p_.planes() + plane) * kLanes);
      }
    }
  }

  const SelectiveScan<T>& p_;
  const SelectiveTask& task_;
  const Mask lanes_;
  const SelectiveRows rows_;
};

template <int kPlanes, bool kOutputs, typename T>
void advance_all(const Scratch& s, StateRows<const T> rows, int64_t states, int64_t count) {
  for_each_group<kForwardStates / kPlanes>(0, states, [&](int64_t n, auto some) {
    advance<kPlanes, some, kOutputs>(s, rows, n, count);
  });
}

template <int kPlanes, typename T, typename Mask>
void forward_task(const SelectiveScan<T>& p, const Task<T, Mask>& task, T* y, float* starts) {
  const Scratch s(p.state_numbers(), 0, false);
  const int64_t vectors = p.state_numbers() * kLanes;
  task.read_parameters(s);
  std::fill_n(s.h, vectors, 0.0f);
  for (int64_t begin = 0; begin < task.length(); begin += kScanChunk) {
    if (starts != nullptr) std::copy_n(s.h, vectors, starts + begin / kScanChunk * vectors);
    task.read(begin, s);
    task.start_rows(s.x, begin, s.y);
    advance_all<kPlanes, true>(s, task.state_rows(begin), p.states, task.count(begin));
    task.write_rows(s.y, begin, y);
  }
  task.write_padding(y);
}

// Sums over time for the gradients of dt_bias and skip.
struct ChannelSums {
  Floats of_dt_bias = zeros(), of_skip = zeros();

  // Turns the gradients of dt into those before its softplus.
  void add_chunk(const Scratch& s, int64_t count) {
    Floats dt = zeros(), skip = zeros();
    for (int64_t at = 0; at < count * kLanes; at += kLanes) {
      const Floats of_raw = load(s.grad_dt + at) * load(s.slope + at);
      store(s.grad_dt + at, of_raw);
      dt = dt + of_raw;
      skip = multiply_add(load(s.grad + at), load(s.x + at), skip);
    }
    of_dt_bias = of_dt_bias + dt;
    of_skip = of_skip + skip;
  }
};

template <int kPlanes, typename T, typename Mask>
void backward_task(const SelectiveScanBackward<T>& problem, const Task<T, Mask>& task,
                   const SelectiveShares<float>& shares, const float* starts) {
  const SelectiveScan<T>& p = problem.problem;
  const int64_t vectors = p.state_numbers() * kLanes, chunks = task.chunks();
  const Scratch s(p.state_numbers(), starts == nullptr ? chunks : 0, true);
  task.read_parameters(s);
  for (float* zero : {s.h, s.r, s.of_a, s.of_bias}) std::fill_n(zero, vectors, 0.0f);
  if (starts == nullptr) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      std::copy_n(s.h, vectors, s.starts + chunk * vectors);
      task.read(chunk * kScanChunk, s);
      advance_all<kPlanes, false>(s, task.state_rows(chunk * kScanChunk), p.states,
                                  task.count(chunk * kScanChunk));
    }
    starts = s.starts;
  }
  ChannelSums sums;
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    const int64_t begin = chunk * kScanChunk, count = task.count(begin);
    task.read(begin, s);
    task.read_rows(problem.grad, begin, s.grad);
    task.start_rows(s.grad, begin, s.y);
    std::fill_n(s.grad_dt, kChunkFloats, 0.0f);
    const auto rows = task.state_rows(begin);
    const auto share_rows = task.share_rows(shares, begin);
    for_each_group<kBackwardStates / kPlanes>(0, p.states, [&](int64_t n, auto some) {
      keep_states<kPlanes, some>(s, rows, starts + chunk * vectors, n, count);
      states_back<kPlanes, some>(s, rows, share_rows, n, count);
    });
    sums.add_chunk(s, count);
    task.write_rows(s.y, begin, problem.grad_x);
    task.write_rows(s.grad_dt, begin, problem.grad_dt);
  }
  task.write_padding(problem.grad_x);
  task.write_padding(problem.grad_dt);
  float* const of_bias = shares.parameters + p.state_numbers() * p.channels;
  float* const of_dt_bias = of_bias + p.state_numbers() * p.channels;
  task.write_states(s.of_a, shares.parameters);
  task.write_states(s.of_bias, of_bias);
  task.write_channels(sums.of_dt_bias, of_dt_bias);
  task.write_channels(sums.of_skip, of_dt_bias + p.channels);
}

// Calls body(task, planes).
template <typename T, typename F>
void with_task(const SelectiveScan<T>& p, const SelectiveTask& task, const F& body) {
  for_each_run(task.count, [&](int64_t, auto lanes) {
    const Task<T, decltype(lanes)> channels(p, task, lanes);
    if (p.frequency == nullptr) {
      body(channels, std::integral_constant<int, 1>{});
    } else {
      body(channels, std::integral_constant<int, 2>{});
    }
  });
}

template <typename T>
void forward(const SelectiveScan<T>& p, const SelectiveTask& task, T* y, float* starts) {
  with_task(p, task, [&](const auto& channels, auto planes) {
    forward_task<planes>(p, channels, y, starts);
  });
}

template <typename T>
void backward(const SelectiveScanBackward<T>& p, const SelectiveTask& task,
              const SelectiveShares<float>& shares, const float* starts) {
  with_task(p.problem, task, [&](const auto& channels, auto planes) {
    backward_task<planes>(p, channels, shares, starts);
  });
}

}  // namespace

template <typename T>
SelectiveScanParts<T> selective_scan_parts() {
  return {forward<T>, backward<T>};
}
template SelectiveScanParts<float> selective_scan_parts();
template SelectiveScanParts<Bf16> selective_scan_parts();

}  // namespace lra::kernels::LRA_ISA
