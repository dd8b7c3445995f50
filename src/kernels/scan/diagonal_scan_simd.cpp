// Sixteen channels at a time. The sequence is copied once to rows of sixteen floats, which both
// directions walk, in chunks that stay in the first cache while groups of modes pass over them.
#include <algorithm>
#include <type_traits>

#include "kernels/aligned_buffer.h"
#include "kernels/scan/diagonal_scan_modes.h"

namespace lra::kernels::LRA_ISA {
namespace {

// Modes that an inner loop advances: enough to hide the two dependent multiply-adds of a state,
// as few as fit the registers.
constexpr int kForwardModes = kIsa == Isa::kAvx512 ? 4 : 2;
constexpr int kBackwardModes = kIsa == Isa::kAvx512 ? 2 : 1;

// Memory of one task; a thread has one task at a time. Rows have one more in front, which the
// second direction reads at the position before the first.
struct Scratch {
  Scratch(int64_t length, int64_t modes, bool backward) {
    const int64_t rows = (length + 1) * kScanChannels, pairs = modes * kPair;
    const int64_t chunks = (length + kScanChunk - 1) / kScanChunk;
    thread_local AlignedBuffer space;
    float* next = space.reserve(
        2 * rows + 3 * pairs +
        backward * (rows + (3 + chunks) * pairs + kScanChunk * kBackwardModes * kPair));
    const auto take = [&](int64_t count) { return next += count, next - count; };
    x = take(rows) + kScanChannels;
    y = take(rows) + kScanChannels;
    a = take(pairs);
    c = take(pairs);
    states = take(pairs);
    if (!backward) return;
    grad_x = take(rows) + kScanChannels;
    state = {take(pairs), take(pairs), take(pairs)};
    starts = take(chunks * pairs);
    before = take(kScanChunk * kBackwardModes * kPair);
  }
  float *x, *y, *a, *c, *states;
  float *grad_x = nullptr, *starts = nullptr, *before = nullptr;
  GradientState state{};
};

// One task: its channels of the problem's arrays, and its rows.
template <typename T, typename Mask>
class Task {
 public:
  Task(const DiagonalScan<T>& p, const ScanTask& task, Mask lanes)
      : length(p.lengths ? p.lengths[task.example] : p.length), p_(p), task_(task), lanes_(lanes) {}

  const int64_t length;

  void read_rows(const T* from, float* rows) const {
    store(rows - kScanChannels, zeros());
    for (int64_t l = 0; l < length; ++l) {
      store(rows + l * kScanChannels, load_lanes(lanes_, from + place(l)));
    }
  }
  void write_rows(const float* rows, T* to) const {
    for (int64_t l = 0; l < p_.length; ++l) {
      store_lanes(to + place(l), lanes_, l < length ? load(rows + l * kScanChannels) : zeros());
    }
  }
  // to = skip from
  void start_rows(const float* from, float* to) const {
    const Floats skip = p_.skip ? load_lanes(lanes_, p_.skip + task_.channel) : zeros();
    store(to - kScanChannels, zeros());
    for (int64_t l = 0; l < length; ++l) {
      store(to + l * kScanChannels, skip * load(from + l * kScanChannels));
    }
  }
  // [planes, modes, channels] from `from` on, to pairs and back.
  void read_pairs(const float* from, float* pairs) const {
    for (int64_t n = 0; n < p_.modes; ++n) {
      for (int64_t plane = 0; plane < p_.planes; ++plane) {
        store(pairs + n * kPair + plane * kLanes, load_lanes(lanes_, from + parameter(n, plane)));
      }
    }
  }
  void write_pairs(const float* pairs, float* to) const {
    for (int64_t n = 0; n < p_.modes; ++n) {
      for (int64_t plane = 0; plane < p_.planes; ++plane) {
        store_lanes(to + parameter(n, plane), lanes_, load(pairs + n * kPair + plane * kLanes));
      }
    }
  }
  void write_channels(Floats x, float* to) const { store_lanes(to + task_.channel, lanes_, x); }
  int64_t coefficients() const { return p_.planes * p_.modes * p_.channels; }

  // Rows [t, t + kScanChunk) of a direction, or as many as there are.
  Rows chunk(const float* x, float* read, int64_t direction, int64_t t) const {
    const int64_t count = std::min(kScanChunk, length - t);
    if (direction == 0) {
      return {x + t * kScanChannels, read + t * kScanChannels, kScanChannels, count};
    }
    const int64_t last = length - 1 - t;
    return {x + last * kScanChannels, read + (last - 1) * kScanChannels, -kScanChannels, count};
  }

 private:
  int64_t place(int64_t l) const {
    return (task_.example * p_.length + l) * p_.channels + task_.channel;
  }
  int64_t parameter(int64_t n, int64_t plane) const {
    return (plane * p_.modes + n) * p_.channels + task_.channel;
  }
  const DiagonalScan<T>& p_;
  const ScanTask& task_;
  const Mask lanes_;
};

template <int kPlanes, typename T, typename Mask>
void forward_task(const DiagonalScan<T>& p, const Task<T, Mask>& task, T* y) {
  const Scratch s(task.length, p.modes, false);
  task.read_rows(p.x, s.x);
  task.start_rows(s.x, s.y);
  task.read_pairs(p.a, s.a);
  for (int64_t d = 0; d < p.directions; ++d) {
    task.read_pairs(p.c + d * task.coefficients(), s.c);
    std::fill_n(s.states, p.modes * kPair, 0.0f);
    for (int64_t t = 0; t < task.length; t += kScanChunk) {
      const Rows rows = task.chunk(s.x, s.y, d, t);
      for_each_group<kForwardModes>(0, p.modes, [&](int64_t n, auto modes) {
        scan_rows<kPlanes, modes>(rows, {s.a + n * kPair, s.c + n * kPair}, s.states + n * kPair);
      });
    }
  }
  task.write_rows(s.y, y);
}

// The states before each chunk.
template <int kPlanes, typename T, typename Mask>
void find_starts(const DiagonalScan<T>& p, const Task<T, Mask>& task, int64_t direction,
                 const Scratch& s) {
  const int64_t pairs = p.modes * kPair;
  std::fill_n(s.states, pairs, 0.0f);
  for (int64_t t = 0; t < task.length; t += kScanChunk) {
    std::copy_n(s.states, pairs, s.starts + t / kScanChunk * pairs);
    const Rows rows = task.chunk(s.x, s.y, direction, t);
    for_each_group<kForwardModes>(0, p.modes, [&](int64_t n, auto modes) {
      scan_states<kPlanes, modes, false>(rows, s.a + n * kPair, s.states + n * kPair, nullptr);
    });
  }
}

template <int kPlanes, typename T, typename Mask>
void direction_back(const DiagonalScan<T>& p, const Task<T, Mask>& task, int64_t direction,
                    const Scratch& s) {
  find_starts<kPlanes>(p, task, direction, s);
  const int64_t pairs = p.modes * kPair;
  for (float* sums : {s.state.r, s.state.of_c, s.state.products}) std::fill_n(sums, pairs, 0.0f);
  const int64_t chunks = (task.length + kScanChunk - 1) / kScanChunk;
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    const Rows rows = task.chunk(s.x, s.y, direction, chunk * kScanChunk);
    const int64_t to_last = (rows.count - 1) * rows.step;
    const Rows last{rows.x + to_last, rows.read + to_last, rows.step, rows.count};
    float* const grad_x = s.grad_x + (last.x - s.x);
    for_each_group<kBackwardModes>(0, p.modes, [&](int64_t n, auto modes) {
      const int64_t at = n * kPair;
      scan_states<kPlanes, modes, true>(rows, s.a + at, s.starts + chunk * pairs + at, s.before);
      scan_back<kPlanes, modes>(last, {s.a + at, s.c + at}, s.before, grad_x,
                                {s.state.r + at, s.state.of_c + at, s.state.products + at});
    });
  }
}

// sums += conj(c) products
template <int kPlanes>
void add_gradient_of_a(int64_t modes, const Scratch& s, float* sums) {
  using C = Complex<kPlanes>;
  for (int64_t at = 0; at < modes * kPair; at += kPair) {
    C sum = C::load_from(sums + at);
    sum.add_product_conjugate(C::load_from(s.state.products + at), C::load_from(s.c + at));
    sum.store_to(sums + at);
  }
}

template <typename T, typename Mask>
void skip_back(const Task<T, Mask>& task, const Scratch& s, float* grad_skip) {
  Floats sum = zeros();
  for (int64_t t = 0; t < task.length; t += kScanChunk) {
    Floats of_chunk = zeros();
    for (int64_t l = t; l < std::min(task.length, t + kScanChunk); ++l) {
      of_chunk = multiply_add(load(s.x + l * kLanes), load(s.y + l * kLanes), of_chunk);
    }
    sum = sum + of_chunk;
  }
  task.write_channels(sum, grad_skip);
}

template <int kPlanes, typename T, typename Mask>
void backward_task(const DiagonalScanBackward<T>& problem, const Task<T, Mask>& task,
                   float* grads) {
  const DiagonalScan<T>& p = problem.problem;
  const Scratch s(task.length, p.modes, true);
  thread_local AlignedBuffer of_a_space;
  float* const of_a = of_a_space.reserve(p.modes * kPair);
  std::fill_n(of_a, p.modes * kPair, 0.0f);
  task.read_rows(p.x, s.x);
  task.read_rows(problem.grad, s.y);
  task.start_rows(s.y, s.grad_x);
  task.read_pairs(p.a, s.a);
  for (int64_t d = 0; d < p.directions; ++d) {
    task.read_pairs(p.c + d * task.coefficients(), s.c);
    direction_back<kPlanes>(p, task, d, s);
    add_gradient_of_a<kPlanes>(p.modes, s, of_a);
    task.write_pairs(s.state.of_c, grads + (1 + d) * task.coefficients());
  }
  task.write_pairs(of_a, grads);
  skip_back(task, s, grads + (1 + p.directions) * task.coefficients());
  task.write_rows(s.grad_x, problem.grad_x);
}

// Calls body(task, integral_constant of planes).
template <typename T, typename F>
void with_task(const DiagonalScan<T>& p, const ScanTask& task, const F& body) {
  for_each_run(std::min(kScanChannels, p.channels - task.channel), [&](int64_t, auto lanes) {
    const Task<T, decltype(lanes)> channels(p, task, lanes);
    if (p.planes == 1) return body(channels, std::integral_constant<int, 1>{});
    body(channels, std::integral_constant<int, 2>{});
  });
}

template <typename T>
void forward(const DiagonalScan<T>& p, const ScanTask& task, T* y) {
  with_task(p, task,
            [&](const auto& channels, auto planes) { forward_task<planes>(p, channels, y); });
}

template <typename T>
void backward(const DiagonalScanBackward<T>& p, const ScanTask& task, float* grads) {
  with_task(p.problem, task,
            [&](const auto& channels, auto planes) { backward_task<planes>(p, channels, grads); });
}

}  // namespace

template <typename T>
ScanParts<T> scan_parts() {
  return {forward<T>, backward<T>};
}
template ScanParts<float> scan_parts();
template ScanParts<Bf16> scan_parts();

}  // namespace lra::kernels::LRA_ISA
