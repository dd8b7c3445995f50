// The matrix scan composed of the library's operators: products inside chunks, and a state from
// chunk to chunk. Differences of sums of log decays come before their exponential.
#include <limits>

#include "ops/composed.h"
#include "ops/precision.h"
#include "ops/scan/matrix_scan.h"

namespace lra::ops {
namespace {

// t [B, L, H, E] with the last heads turned around along L.
Tensor in_order_of_time(const Tensor& t, int64_t reversed_heads) {
  if (reversed_heads == 0) return t;
  const auto parts = t.split_with_sizes({t.size(2) - reversed_heads, reversed_heads}, 2);
  return at::cat({parts[0], parts[1].flip(1)}, 2);
}

// [B, L, H, E] in the order of time, 0 at padding, as chunks [B, H, chunks, chunk, E].
Tensor chunks_of(const Tensor& t, at::ScalarType type, int64_t chunk, int64_t reversed_heads,
                 const MaybeTensor& mask) {
  const Tensor valid = without_padding(t.to(type).flatten(2), mask).view(t.sizes());
  const int64_t behind = (chunk - t.size(1) % chunk) % chunk;
  const Tensor rows =
      at::constant_pad_nd(in_order_of_time(valid, reversed_heads), {0, 0, 0, 0, 0, behind});
  return rows.unflatten(1, {-1, chunk}).permute({0, 3, 1, 2, 4});
}

// Decayed products of rows and columns [.., chunk, E]: sum_n rows_in columns_jn exp(c_in - c_jn),
// 0 for j > i - first.
Tensor meetings(const Tensor& rows, const Tensor& columns, const Tensor& sums, int64_t first) {
  const int64_t chunk = rows.size(-2);
  const Tensor after = at::ones({chunk, chunk}, rows.options().dtype(at::kBool)).triu(1 - first);
  // -infinity before the exponential: an infinite one times 0 would be NaN in the gradient.
  const Tensor weights = (sums.unsqueeze(-2) - sums.unsqueeze(-3))
                             .masked_fill(after.unsqueeze(-1),
                                          -std::numeric_limits<double>::infinity())
                             .exp();  // [.., chunk, chunk, 1 or E]
  if (sums.size(-1) == 1) return at::matmul(rows, columns.transpose(-1, -2)) * weights.squeeze(-1);
  return (rows.unsqueeze(-2) * columns.unsqueeze(-3) * weights).sum(-1);
}

}  // namespace

Tensor composed_matrix_scan(const MatrixScanInput& in) {
  check_matrix_scan(in);
  const Tensor &q_in = in.q_BLGK, &k_in = in.k_BLGK, &v_in = in.v_BLHV, &reads = in.reads_BLGK;
  const bool delta = in.has_delta_rule();
  const MaybeTensor mask = optional_tensor(in.mask_BL);
  const auto type = wide_type(q_in);
  const int64_t length = q_in.size(1), chunk = in.log_decay_BLHK.size(3) == 1 ? 64 : 16;
  const auto chunks = [&](const Tensor& t) {
    return chunks_of(t, type, chunk, in.reversed_heads, mask);
  };
  const auto of_heads = [&](const Tensor& t) {  // heads that share a key
    const int64_t each = v_in.size(2) / t.size(2);
    return each == 1 ? t : t.repeat_interleave(each, 2);
  };
  const Tensor q = chunks(of_heads(q_in)), k = chunks(of_heads(k_in)),
               sums = chunks(in.log_decay_BLHK).cumsum(-2);
  Tensor v = chunks(v_in), of_start;
  const Tensor last = sums.narrow(-2, chunk - 1, 1), to_end = k * (last - sums).exp();
  const Tensor attends = meetings(q, k, sums, 0), from_start = q * sums.exp();
  if (in.beta_BLH.defined() && !delta) v = v * chunks(in.beta_BLH.unsqueeze(3));
  if (delta) {
    // u = v' - of_start S for the state S before the chunk: u_i + beta_i sum_j (r_i meets k_j) u_j
    // = beta_i (v_i - (exp(c_i) r_i)^T S), a triangular system.
    const Tensor scale = chunks(in.beta_BLH.unsqueeze(3)),
                 r = reads.defined() ? chunks(of_heads(reads)) : k;
    const Tensor lower = scale * meetings(r, k, sums, 1);
    const Tensor solved = at::linalg_solve_triangular(
        lower, scale * at::cat({v, r * sums.exp()}, -1), /*upper=*/false, /*left=*/true,
        /*unitriangular=*/true);
    v = solved.narrow(-1, 0, v_in.size(3));
    of_start = solved.narrow(-1, v_in.size(3), k_in.size(3));
  }
  Tensor state = at::zeros({q_in.size(0), v_in.size(2), q_in.size(3), v_in.size(3)}, q.options());
  std::vector<Tensor> outputs;
  // unbind, because the gradient of each select would fill an array of all chunks.
  const auto each = [](const Tensor& t) { return t.unbind(2); };
  const auto of_attends = each(attends), of_q = each(from_start), of_v = each(v),
             of_k = each(to_end.transpose(-1, -2)), of_decay = each(last.exp().transpose(-1, -2)),
             of_starts = delta ? each(of_start) : std::vector<Tensor>();
  for (size_t n = 0; n < of_q.size(); ++n) {
    const Tensor u = delta ? of_v[n] - at::matmul(of_starts[n], state) : of_v[n];
    outputs.push_back(at::matmul(of_attends[n], u) + at::matmul(of_q[n], state));
    state = of_decay[n] * state + at::matmul(of_k[n], u);
  }
  if (outputs.empty()) return at::zeros_like(v_in);
  const Tensor o =
      in_order_of_time(at::cat(outputs, 2).narrow(2, 0, length).transpose(1, 2), in.reversed_heads);
  return without_padding(o.flatten(2), mask).view(o.sizes()).to(q_in.scalar_type()).contiguous();
}

MatrixScanGradients composed_matrix_scan_backward(const Tensor& grad, const MatrixScanInput& in) {
  const auto o = [&](const auto& t) {
    return variable_list{composed_matrix_scan(
        {t[0], t[1], t[2], t[3], t[4], in.reversed_heads, in.mask_BL, in.delta, t[5]})};
  };
  const auto of = composed_backward_pass(
      o, {in.q_BLGK, in.k_BLGK, in.v_BLHV, in.log_decay_BLHK, in.beta_BLH, in.reads_BLGK}, {grad});
  return {of[0],
          of[1],
          of[2],
          of[3],
          of[4].defined() ? of[4] : at::empty({0}, in.log_decay_BLHK.options()),
          of[5].defined() ? of[5] : at::empty({0}, in.k_BLGK.options())};
}

}  // namespace lra::ops
