// The definition, row by row.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/feature_attention/feature_attention_rows.h"

namespace lra::kernels::ref {
namespace {

template <typename T>
using Head = FeatureHeadRows<T, Isa::kRef>;

template <typename T>
Wide<T> feature(const FeatureAttention<T>& p, T value) {
  const Wide<T> x = value;
  // NaN stays NaN.
  if (p.map == FeatureMap::kRelu) return (x <= 0 ? 0 : x) + static_cast<Wide<T>>(p.offset);
  return x > 0 ? x + 1 : std::exp(x);
}

template <typename T>
Wide<T> slope(const FeatureAttention<T>& p, T value) {
  const Wide<T> x = value;
  if (x > 0) return 1;
  return p.map == FeatureMap::kRelu ? 0 : std::exp(x);
}

// phi(q_i) . sum_j phi(k_j)
template <typename T>
Wide<T> denominator(const FeatureAttention<T>& p, const T* q, const Wide<T>* sums) {
  Wide<T> sum = 0;
  for (int64_t r = 0; r < p.width; ++r) {
    sum += feature(p, q[r]) * sums[r * feature_sum_columns(p.width) + p.width];
  }
  return sum;
}

template <typename T>
void sum_features(const FeatureAttention<T>& p, const FeatureRows& rows, Wide<T>* sums) {
  const Head<T> head(p, rows);
  const int64_t columns = head.columns;
  std::fill_n(sums, p.width * columns, Wide<T>{0});
  for (int64_t j = rows.begin; j < rows.end; ++j) {
    if (!head.takes_part(j)) continue;
    const T *k = head.input(j, QkvPart::kKey), *v = head.input(j, QkvPart::kValue);
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
void attend_features(const FeatureAttention<T>& p, const FeatureRows& rows, const Wide<T>* sums,
                     T* out) {
  const Head<T> head(p, rows);
  std::vector<Wide<T>> row(static_cast<size_t>(p.width));
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* q = head.input(i, QkvPart::kQuery);
    std::fill(row.begin(), row.end(), Wide<T>{0});
    for (int64_t r = 0; r < p.width; ++r) {
      const Wide<T> phi = feature(p, q[r]);
      for (int64_t e = 0; e < p.width; ++e) {
        row[static_cast<size_t>(e)] += phi * sums[r * head.columns + e];
      }
    }
    const Wide<T> inverse = head.inverse(denominator(p, q, sums));
    T* to = out + head.out_row(i);
    for (int64_t e = 0; e < p.width; ++e) to[e] = row[static_cast<size_t>(e)] * inverse;
  }
}

template <typename T>
void query_gradients(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                     const Wide<T>* sums, Wide<T>* grad_sums) {
  const Head<T> head(p.problem, rows);
  const int64_t width = head.width, columns = head.columns;
  std::fill_n(grad_sums, width * columns, Wide<T>{0});
  // Gradients of phi(q_i) Z: of its numerators, then of its denominator.
  std::vector<Wide<T>> grads(static_cast<size_t>(width + 1));
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* q = head.input(i, QkvPart::kQuery);
    const T *grad = p.grad + head.out_row(i), *out = p.out + head.out_row(i);
    T* grad_q = p.grad_qkv + head.row(i, QkvPart::kQuery);
    const Wide<T> inverse = head.inverse(denominator(p.problem, q, sums));
    grads.back() = 0;
    for (int64_t e = 0; e < width; ++e) {
      const Wide<T> of_numerator = static_cast<Wide<T>>(grad[e]) * inverse;
      grads[static_cast<size_t>(e)] = of_numerator;
      grads.back() -= of_numerator * static_cast<Wide<T>>(out[e]);
    }
    for (int64_t r = 0; r < width; ++r) {
      const Wide<T> phi = feature(p.problem, q[r]);
      Wide<T> grad_phi = 0;
      for (int64_t c = 0; c <= width; ++c) {
        grad_phi += grads[static_cast<size_t>(c)] * sums[r * columns + c];
        grad_sums[r * columns + c] += phi * grads[static_cast<size_t>(c)];
      }
      grad_q[r] = grad_phi * slope(p.problem, q[r]);
    }
  }
}

template <typename T>
void key_gradients(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                   const Wide<T>* grad_sums) {
  const Head<T> head(p.problem, rows);
  const int64_t width = head.width;
  std::vector<Wide<T>> grad_value(static_cast<size_t>(width));
  for (int64_t j = rows.begin; j < rows.end; ++j) {
    const T *k = head.input(j, QkvPart::kKey), *v = head.input(j, QkvPart::kValue);
    T* grad_k = p.grad_qkv + head.row(j, QkvPart::kKey);
    T* grad_v = p.grad_qkv + head.row(j, QkvPart::kValue);
    if (!head.takes_part(j)) {
      std::fill_n(grad_k, width, T(0));
      std::fill_n(grad_v, width, T(0));
      continue;
    }
    std::fill(grad_value.begin(), grad_value.end(), Wide<T>{0});
    for (int64_t r = 0; r < width; ++r) {
      const Wide<T>* of_phi = grad_sums + r * head.columns;
      const Wide<T> phi = feature(p.problem, k[r]);
      Wide<T> grad_phi = of_phi[width];
      for (int64_t e = 0; e < width; ++e) {
        grad_phi += static_cast<Wide<T>>(v[e]) * of_phi[e];
        grad_value[static_cast<size_t>(e)] += phi * of_phi[e];
      }
      grad_k[r] = grad_phi * slope(p.problem, k[r]);
    }
    std::copy(grad_value.begin(), grad_value.end(), grad_v);
  }
}

}  // namespace

template <typename T>
FeatureParts<T> feature_parts() {
  return {sum_features<T>, attend_features<T>, query_gradients<T>, key_gradients<T>};
}
template FeatureParts<float> feature_parts();
template FeatureParts<Bf16> feature_parts();
template FeatureParts<double> feature_parts();

}  // namespace lra::kernels::ref
