#include <numbers>

#include "kernels/scan/matrix_scan_chunk.h"

namespace lra::kernels::LRA_ISA {
namespace {

// A head of an example of the problem's arrays.
template <typename T, bool kDelta>
class MatrixTask {
 public:
  MatrixTask(const MatrixScan<T>& p, int64_t task) : p_(p), rows_(p, task) {}

  int64_t chunks() const { return (rows_.length + kChunkRows - 1) / kChunkRows; }
  int64_t count(int64_t begin) const { return std::min(kChunkRows, rows_.length - begin); }
  // The place of row `time` in an array [batch, length, heads].
  int64_t place(int64_t time) const { return rows_.at(time, 1); }

  // Rows of an array [batch, length, heads, width] from `begin` on; those behind the end are 0.
  template <typename U>
  void read(const U* from, int64_t width, int64_t begin, int64_t stride, float* to) const {
    read_rows(width, begin, stride, to, [&](int64_t t) { return from + rows_.at(t, width); });
  }
  template <typename F>
  void read_rows(int64_t width, int64_t begin, int64_t stride, float* to, const F& row_at) const {
    std::fill_n(to + count(begin) * stride, (kChunkRows - count(begin)) * stride, 0.0f);
    for (int64_t t = 0; t < count(begin); ++t, to += stride) {
      const auto* const row = row_at(begin + t);
      for_each_run(width,
                   [&](int64_t n, auto lanes) { store(to + n, load_lanes(lanes, row + n)); });
    }
  }
  template <typename U>
  void write(const float* from, int64_t width, int64_t begin, int64_t stride, U* to) const {
    for (int64_t t = 0; t < count(begin); ++t, from += stride) {
      U* const row = to + rows_.at(begin + t, width);
      for_each_run(width,
                   [&](int64_t n, auto lanes) { store_lanes(row + n, lanes, load(from + n)); });
    }
  }
  template <typename U>
  void write_padding(int64_t width, U* to) const {
    for (int64_t t = rows_.length; t < p_.length; ++t) {
      std::fill_n(to + rows_.at(t, width), width, U(0.0f));
    }
  }

  void read_chunk(int64_t begin, const MatrixChunk& c) const {
    const auto q_at = [&](int64_t t) { return p_.q + rows_.at_key(t, p_.q_row); };
    const auto k_at = [&](int64_t t) { return p_.k + rows_.at_key(t, p_.k_row); };
    read_rows(p_.keys, begin, c.keys, c.q, q_at);
    read_rows(p_.keys, begin, c.keys, c.k, k_at);
    const auto r_at = [&](int64_t t) { return p_.r + rows_.at_key(t, p_.r_row); };
    if (c.r != c.k) read_rows(p_.keys, begin, c.keys, c.r, r_at);
    if (p_.decays == p_.keys) {
      read(p_.log_decay, p_.keys, begin, c.keys, c.decay);
    } else {
      for (int64_t t = 0; t < kChunkRows; ++t) {
        const float log = t < count(begin) ? p_.log_decay[place(begin + t)] : 0.0f;
        for (int64_t n = 0; n < c.keys; n += kLanes)
          store(c.decay + t * c.keys + n, broadcast(log));
      }
    }
    for (int64_t at = 0; at < c.of_keys; at += kLanes) {
      store(c.decay + at, exp2(load(c.decay + at) * broadcast(std::numbers::log2e_v<float>)));
    }
  }
  float beta(int64_t t) const { return t < rows_.length ? p_.beta[place(t)] : 0.0f; }

  // u of a chunk after c.state; `errors` [16, values] becomes what beta multiplies: v, with kDelta
  // v - S^T r.
  void read_u(int64_t begin, const MatrixChunk& c, float* errors) const {
    const auto v_at = [&](int64_t t) { return p_.v + rows_.at_value(t, p_.v_row); };
    read_rows(p_.values, begin, c.values, p_.beta == nullptr ? c.u : errors, v_at);
    if constexpr (!kDelta) return times_beta(begin, c, errors);
    gemm({kChunkRows, c.values, c.keys},
         {c.r_from_start, c.keys, 1, c.state, c.values, kLanes, errors, c.values}, true);
    for (int64_t i = 0; i < kChunkRows; ++i) {
      const float* const meets = c.r_meets_k + i * kChunkRows;
      const Floats beta_i = broadcast(beta(begin + i));
      for (int64_t n = 0; n < c.values; n += kLanes) {
        Floats error = load(errors + i * c.values + n);
        for (int64_t j = 0; j < i; ++j) {
          error = subtract_product(error, broadcast(meets[j]), load(c.u + j * c.values + n));
        }
        store(errors + i * c.values + n, error);
        store(c.u + i * c.values + n, beta_i * error);
      }
    }
  }
  // The same from the errors that read_u() left, of one chunk with kDelta.
  void reread_u(int64_t begin, const MatrixChunk& c, float* errors) const {
    if constexpr (!kDelta) return read_u(begin, c, errors);
    times_beta(begin, c, errors);
  }
  void times_beta(int64_t begin, const MatrixChunk& c, const float* errors) const {
    if (p_.beta == nullptr) return;
    for (int64_t i = 0; i < kChunkRows; ++i) {
      const Floats beta_i = broadcast(beta(begin + i));
      for (int64_t n = i * c.values; n < (i + 1) * c.values; n += kLanes) {
        store(c.u + n, beta_i * load(errors + n));
      }
    }
  }
  void write_log_decay(int64_t begin, const MatrixChunk& c, float* to) const {
    if (p_.decays == p_.keys) return write(c.grad_log, p_.keys, begin, c.keys, to);
    for (int64_t t = 0; t < count(begin); ++t) {
      Floats sum = zeros();
      for (int64_t n = 0; n < c.keys; n += kLanes) sum = sum + load(c.grad_log + t * c.keys + n);
      to[place(begin + t)] = sum_of_lanes(sum);
    }
  }

 private:
  const MatrixScan<T>& p_;
  const MatrixScanRows rows_;
};

// [keys, values] of rows times whole_decay.
inline void decay_state(const MatrixChunk& c, float* state) {
  for (int64_t n = 0; n < c.keys; ++n) {
    const Floats decay = broadcast(c.whole_decay[n]);
    for (int64_t m = 0; m < c.values; m += kLanes) {
      store(state + n * c.values + m, decay * load(state + n * c.values + m));
    }
  }
}

// From c.state before a chunk to the one behind it.
inline void advance_state(const MatrixChunk& c) {
  decay_state(c, c.state);
  gemm({c.keys, c.values, kChunkRows},
       {c.k_to_end, 1, c.keys, c.u, c.values, kLanes, c.state, c.values}, true);
}

template <bool kDelta, typename T>
void forward_task(const MatrixScan<T>& p, int64_t task, T* o) {
  const MatrixTask<T, kDelta> rows(p, task);
  const MatrixChunk c(p.keys, p.values, 0, kDelta, kDelta && p.r, false);
  std::fill_n(c.state, c.state_size, 0.0f);
  for (int64_t chunk = 0; chunk < rows.chunks(); ++chunk) {
    const int64_t begin = chunk * kChunkRows;
    rows.read_chunk(begin, c);
    meet_keys<kDelta>(c);
    refer_to_start<kDelta>(c);
    rows.read_u(begin, c, c.v);
    gemm({rows.count(begin), c.values, kChunkRows},
         {c.q_meets_k, kChunkRows, 1, c.u, c.values, kLanes, c.o, c.values}, false);
    gemm({rows.count(begin), c.values, c.keys},
         {c.q_from_start, c.keys, 1, c.state, c.values, kLanes, c.o, c.values}, true);
    advance_state(c);
    rows.write(c.o, p.values, begin, c.values, o);
  }
  rows.write_padding(p.values, o);
}

// The gradient of v from that of u, row by row from the last; that of u's errors, which it is too,
// stays in c.grad_u.
template <bool kDelta, typename T>
void errors_back(const MatrixScanBackward<T>& p, const MatrixTask<T, kDelta>& rows, int64_t begin,
                 const float* errors, const MatrixChunk& c) {
  if (p.problem.beta == nullptr) return;
  for (int64_t i = kChunkRows - 1; i >= 0; --i) {
    float* const of_u = c.grad_u + i * c.values;
    if (i < rows.count(begin)) {
      p.grad_beta[rows.place(begin + i)] = dot(of_u, errors + i * c.values, c.values);
    }
    const Floats beta = broadcast(rows.beta(begin + i));
    for (int64_t n = 0; n < c.values; n += kLanes) {
      const Floats of_error = beta * load(of_u + n);
      store(of_u + n, of_error);
      for (int64_t j = 0; kDelta && j < i; ++j) {
        float* const earlier = c.grad_u + j * c.values + n;
        const Floats meets = broadcast(c.r_meets_k[i * kChunkRows + j]);
        store(earlier, subtract_product(load(earlier), meets, of_error));
      }
    }
  }
}

// grad_q_meets_k and with kDelta grad_r_meets_k, 0 where a row is not behind a key.
template <bool kDelta>
void meetings_back(const MatrixChunk& c) {
  transpose_matrix(c.u, kChunkRows, c.values, c.u_down);
  const auto products = [&](const float* grads, float* to) {
    gemm({kChunkRows, kChunkRows, c.values},
         {grads, c.values, 1, c.u_down, kChunkRows, kLanes, to, kChunkRows}, false);
  };
  products(c.grad, c.grad_q_meets_k);
  if (kDelta) products(c.grad_u, c.grad_r_meets_k);
  for (int64_t i = 0; i < kChunkRows; ++i) {
    float *const of_q = c.grad_q_meets_k + i * kChunkRows, *const of_k =
                                                               c.grad_r_meets_k + i * kChunkRows;
    store(of_q, keep(lanes_between(0, i + 1), load(of_q)));
    if (kDelta) store(of_k, zeros() - keep(lanes_between(0, i), load(of_k)));
  }
}

// The gradients of rows by their meeting with the state before the chunk and the one behind it, as
// far as c.grad_log has the latter's part in the last row.
template <bool kDelta>
void states_back(const MatrixChunk& c, const float* start) {
  transpose_matrix(start, c.keys, c.values, c.state_down);
  transpose_matrix(c.grad_state, c.keys, c.values, c.grad_state_down);
  const auto rows_times = [&](const float* rows, const float* down, float* to) {
    gemm({kChunkRows, c.keys, c.values}, {rows, c.values, 1, down, c.keys, kLanes, to, c.keys},
         false);
  };
  rows_times(c.grad, c.state_down, c.grad_q);
  rows_times(c.u, c.grad_state_down, c.grad_k);
  if (kDelta) rows_times(c.grad_u, c.state_down, c.grad_r);
  for (int64_t n = 0; n < c.keys; n += kLanes) {
    Floats of_whole = zeros(), to_end = broadcast(1.0f);
    for (int64_t m = n; m < c.state_size; m += c.keys) {
      of_whole = multiply_add(load(c.state_down + m), load(c.grad_state_down + m), of_whole);
    }
    of_whole = of_whole * load(c.whole_decay + n);
    for (int64_t i = kChunkRows - 1; i >= 0; --i) {
      const int64_t at = i * c.keys + n;
      const Floats from_start = load(c.from_start + at), of_key = load(c.grad_k + at);
      of_whole = multiply_add(of_key, load(c.k_to_end + at), of_whole);
      store(c.grad_k + at, to_end * of_key);
      to_end = to_end * load(c.decay + at);
      store(c.grad_q + at, from_start * load(c.grad_q + at));
      if (kDelta) store(c.grad_r + at, zeros() - from_start * load(c.grad_r + at));
    }
    store(c.grad_log + (kChunkRows - 1) * c.keys + n, of_whole);
  }
}

// The gradient of c_i is what row i reads less what is read of it; that of its log decay the sum
// over later rows. Sums up the gradients of keys that also read.
template <bool kDelta>
void logs_back(const MatrixChunk& c) {
  for (int64_t n = 0; n < c.keys; n += kLanes) {
    Floats sum = load(c.grad_log + (kChunkRows - 1) * c.keys + n);
    for (int64_t i = kChunkRows - 1; i >= 0; --i) {
      const int64_t at = i * c.keys + n;
      const Floats written = load(c.grad_k + at);
      const Floats read = kDelta ? load(c.grad_r + at) : zeros();
      sum = multiply_add(load(c.q + at), load(c.grad_q + at), sum);
      if (c.r == c.k) {
        sum = multiply_add(load(c.k + at), read - written, sum);
        store(c.grad_k + at, read + written);
      } else {
        sum = multiply_add(load(c.r + at), read, sum);
        sum = subtract_product(sum, load(c.k + at), written);
      }
      store(c.grad_log + at, sum);
    }
  }
}

// The gradient of the state before the chunk.
template <bool kDelta>
void state_back(const MatrixChunk& c) {
  decay_state(c, c.grad_state);
  const auto add_products = [&](const float* rows, const float* grads) {
    gemm({c.keys, c.values, kChunkRows},
         {rows, 1, c.keys, grads, c.values, kLanes, c.grad_state, c.values}, true);
  };
  add_products(c.q_from_start, c.grad);
  if (kDelta) add_products(c.r_from_start, c.grad_u);
}

template <bool kDelta, typename T>
void backward_task(const MatrixScanBackward<T>& problem, int64_t task) {
  const MatrixScan<T>& p = problem.problem;
  const MatrixTask<T, kDelta> rows(p, task);
  const MatrixChunk c(p.keys, p.values, rows.chunks(), kDelta, kDelta && p.r, true);
  std::fill_n(c.state, c.state_size, 0.0f);
  std::fill_n(c.grad_state, c.state_size, 0.0f);
  const auto errors_of = [&](int64_t chunk) {
    return kDelta ? c.errors + chunk * c.of_values : c.v;
  };
  for (int64_t chunk = 0; chunk < rows.chunks(); ++chunk) {
    std::copy_n(c.state, c.state_size, c.starts + chunk * c.state_size);
    rows.read_chunk(chunk * kChunkRows, c);
    meet_keys<kDelta>(c);
    refer_to_start<kDelta>(c);
    rows.read_u(chunk * kChunkRows, c, errors_of(chunk));
    advance_state(c);
  }
  for (int64_t chunk = rows.chunks() - 1; chunk >= 0; --chunk) {
    const int64_t begin = chunk * kChunkRows;
    rows.read_chunk(begin, c);
    rows.read(problem.grad, p.values, begin, c.values, c.grad);
    meet_keys<kDelta>(c);
    refer_to_start<kDelta>(c);
    rows.reread_u(begin, c, errors_of(chunk));
    gemm({kChunkRows, c.values, kChunkRows},
         {c.q_meets_k, 1, kChunkRows, c.grad, c.values, kLanes, c.grad_u, c.values}, false);
    gemm({kChunkRows, c.values, c.keys},
         {c.k_to_end, c.keys, 1, c.grad_state, c.values, kLanes, c.grad_u, c.values}, true);
    errors_back(problem, rows, begin, errors_of(chunk), c);
    meetings_back<kDelta>(c);
    states_back<kDelta>(c, c.starts + chunk * c.state_size);
    readers_back<kDelta>(c);
    written_back<kDelta>(c);
    logs_back<kDelta>(c);
    state_back<kDelta>(c);
    rows.write(c.grad_q, p.keys, begin, c.keys, problem.grad_q);
    rows.write(c.grad_k, p.keys, begin, c.keys, problem.grad_k);
    if (c.r != c.k) rows.write(c.grad_r, p.keys, begin, c.keys, problem.grad_r);
    rows.write(c.grad_u, p.values, begin, c.values, problem.grad_v);
    rows.write_log_decay(begin, c, problem.grad_log_decay);
  }
  rows.write_padding(p.keys, problem.grad_q);
  rows.write_padding(p.keys, problem.grad_k);
  if (c.r != c.k) rows.write_padding(p.keys, problem.grad_r);
  rows.write_padding(p.values, problem.grad_v);
  rows.write_padding(p.decays, problem.grad_log_decay);
  if (p.beta != nullptr) rows.write_padding(1, problem.grad_beta);
}

template <typename T>
void forward(const MatrixScan<T>& p, int64_t task, T* o) {
  p.delta ? forward_task<true>(p, task, o) : forward_task<false>(p, task, o);
}

template <typename T>
void backward(const MatrixScanBackward<T>& p, int64_t task) {
  p.problem.delta ? backward_task<true>(p, task) : backward_task<false>(p, task);
}

}  // namespace

template <typename T>
MatrixScanParts<T> matrix_scan_parts() {
  return {forward<T>, backward<T>};
}
template MatrixScanParts<float> matrix_scan_parts();
template MatrixScanParts<Bf16> matrix_scan_parts();

}  // namespace lra::kernels::LRA_ISA
