// The definition, row by row.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/feature_attention.h"

namespace lra::kernels::ref {
namespace {

enum Part { kQueries, kKeys, kValues };

template <typename T>
int64_t row_of(const FeatureAttention<T>& p, const FeatureRows& rows, int64_t i, Part part) {
  return (((rows.example * p.length + i) * 3 + part) * p.heads + rows.head) * p.width;
}

// Of out and its gradient.
template <typename T>
int64_t out_row_of(const FeatureAttention<T>& p, const FeatureRows& rows, int64_t i) {
  return ((rows.example * p.length + i) * p.heads + rows.head) * p.width;
}

template <typename T>
bool takes_part(const FeatureAttention<T>& p, const FeatureRows& rows, int64_t j) {
  return !p.mask || p.mask[rows.example * p.length + j] != 0;
}

template <typename T>
Wide<T> feature(const FeatureAttention<T>& p, T value) {
  const Wide<T> x = value;
  if (p.map == FeatureMap::kRelu) return (x > 0 ? x : 0) + static_cast<Wide<T>>(p.offset);
  return x > 0 ? x + 1 : std::exp(x);
}

template <typename T>
Wide<T> slope(const FeatureAttention<T>& p, T value) {
  const Wide<T> x = value;
  if (x > 0) return 1;
  return p.map == FeatureMap::kRelu ? 0 : std::exp(x);
}

// 1 / (phi(q_i) . sum_j phi(k_j) + eps), or 0.
template <typename T>
Wide<T> inverse_sum(const FeatureAttention<T>& p, const T* q, const Wide<T>* sums) {
  Wide<T> sum = 0;
  for (int64_t r = 0; r < p.width; ++r) {
    sum += feature(p, q[r]) * sums[r * feature_sum_columns(p.width) + p.width];
  }
  return sum == 0 ? 0 : 1 / (sum + static_cast<Wide<T>>(p.eps));
}

}  // namespace

template <typename T>
void sum_features(const FeatureAttention<T>& p, const FeatureRows& rows, Wide<T>* sums) {
  const int64_t columns = feature_sum_columns(p.width);
  std::fill_n(sums, p.width * columns, Wide<T>{0});
  for (int64_t j = rows.begin; j < rows.end; ++j) {
    if (!takes_part(p, rows, j)) continue;
    const T *k = p.qkv + row_of(p, rows, j, kKeys), *v = p.qkv + row_of(p, rows, j, kValues);
    for (int64_t r = 0; r < p.width; ++r) {
      const Wide<T> phi = feature(p, k[r]);
      for (int64_t e = 0; e < p.width; ++e) {
        sums[r * columns + e] += phi * static_cast<Wide<T>>(v[e]);
      }
      sums[r * columns + p.width] += phi;
    }
  }
}

template <typename T>
void attend_features(const FeatureAttention<T>& p, const FeatureRows& rows, const Wide<T>* sums) {
  const int64_t columns = feature_sum_columns(p.width);
  std::vector<Wide<T>> row(static_cast<size_t>(p.width));
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* q = p.qkv + row_of(p, rows, i, kQueries);
    std::fill(row.begin(), row.end(), Wide<T>{0});
    for (int64_t r = 0; r < p.width; ++r) {
      const Wide<T> phi = feature(p, q[r]);
      for (int64_t e = 0; e < p.width; ++e) {
        row[static_cast<size_t>(e)] += phi * sums[r * columns + e];
      }
    }
    const Wide<T> inverse = inverse_sum(p, q, sums);
    T* out = p.out + out_row_of(p, rows, i);
    for (int64_t e = 0; e < p.width; ++e) out[e] = row[static_cast<size_t>(e)] * inverse;
  }
}

template <typename T>
void query_gradients(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                     const Wide<T>* sums, Wide<T>* grad_sums) {
  const FeatureAttention<T>& forward = p.forward;
  const int64_t width = forward.width, columns = feature_sum_columns(width);
  std::fill_n(grad_sums, width * columns, Wide<T>{0});
  // Of phi(q_i) Z: its numerators, and its denominator.
  std::vector<Wide<T>> grads(static_cast<size_t>(width + 1));
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const int64_t at = row_of(forward, rows, i, kQueries), out = out_row_of(forward, rows, i);
    const T* q = forward.qkv + at;
    const Wide<T> inverse = inverse_sum(forward, q, sums);
    Wide<T> of_sum = 0;
    for (int64_t e = 0; e < width; ++e) {
      const Wide<T> grad = static_cast<Wide<T>>(p.grad[out + e]) * inverse;
      grads[static_cast<size_t>(e)] = grad;
      of_sum -= grad * static_cast<Wide<T>>(forward.out[out + e]);
    }
    grads.back() = of_sum;
    for (int64_t r = 0; r < width; ++r) {
      const Wide<T> phi = feature(forward, q[r]);
      Wide<T> grad_phi = 0;
      for (int64_t c = 0; c <= width; ++c) {
        grad_phi += grads[static_cast<size_t>(c)] * sums[r * columns + c];
        grad_sums[r * columns + c] += phi * grads[static_cast<size_t>(c)];
      }
      p.grad_qkv[at + r] = grad_phi * slope(forward, q[r]);
    }
  }
}

template <typename T>
void key_gradients(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                   const Wide<T>* grad_sums) {
  const FeatureAttention<T>& forward = p.forward;
  const int64_t width = forward.width, columns = feature_sum_columns(width);
  std::vector<Wide<T>> grad_v(static_cast<size_t>(width));
  for (int64_t j = rows.begin; j < rows.end; ++j) {
    const int64_t at_k = row_of(forward, rows, j, kKeys);
    const int64_t at_v = row_of(forward, rows, j, kValues);
    const T *k = forward.qkv + at_k, *v = forward.qkv + at_v;
    const bool sees = takes_part(forward, rows, j);
    std::fill(grad_v.begin(), grad_v.end(), Wide<T>{0});
    for (int64_t r = 0; r < width; ++r) {
      const Wide<T>* of_phi = grad_sums + r * columns;
      const Wide<T> phi = feature(forward, k[r]);
      Wide<T> grad_phi = of_phi[width];
      for (int64_t e = 0; e < width; ++e) {
        grad_phi += static_cast<Wide<T>>(v[e]) * of_phi[e];
        grad_v[static_cast<size_t>(e)] += phi * of_phi[e];
      }
      p.grad_qkv[at_k + r] = sees ? grad_phi * slope(forward, k[r]) : Wide<T>{0};
    }
    for (int64_t e = 0; e < width; ++e) {
      p.grad_qkv[at_v + e] = sees ? grad_v[static_cast<size_t>(e)] : Wide<T>{0};
    }
  }
}

#define LRA_INSTANTIATE(T)                                                                       \
  template void sum_features(const FeatureAttention<T>&, const FeatureRows&, Wide<T>*);          \
  template void attend_features(const FeatureAttention<T>&, const FeatureRows&, const Wide<T>*); \
  template void query_gradients(const FeatureAttentionBackward<T>&, const FeatureRows&,          \
                                const Wide<T>*, Wide<T>*);                                       \
  template void key_gradients(const FeatureAttentionBackward<T>&, const FeatureRows&,            \
                              const Wide<T>*);
LRA_INSTANTIATE(float)
LRA_INSTANTIATE(Bf16)
LRA_INSTANTIATE(double)
#undef LRA_INSTANTIATE

}  // namespace lra::kernels::ref
