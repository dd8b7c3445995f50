// Feature attention on blocks of rows whose features stay in the cache. Included once by each file
// that has products for them: `Products` (FloatFeatures in feature_attention_simd.cpp) multiplies
// what FeatureScratch holds.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/aligned_buffer.h"
#include "kernels/feature_attention/feature_attention_rows.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

inline constexpr int64_t kFeatureBlock = 64;

// The rows of one head, and its feature map.
template <typename T>
class FeatureHead : public FeatureHeadRows<T, kIsa> {
 public:
  FeatureHead(const FeatureAttention<T>& p, const FeatureRows& rows)
      : FeatureHeadRows<T, kIsa>(p, rows),
        map_(p.map),
        offset_(broadcast(static_cast<float>(p.offset))) {}

  Floats feature(Floats x) const {
    if (map_ == FeatureMap::kElu) return elu_plus_one(x);
    // For NaN, max returns the second operand.
    return max(zeros(), x) + offset_;
  }
  // grad times the slope of the map at x
  Floats through_feature(Floats grad, Floats x) const {
    const Floats slope = map_ == FeatureMap::kElu ? elu_plus_one(x) : zeros();
    return select(greater(x, zeros()), grad, grad * slope);
  }

 private:
  const FeatureMap map_;
  const Floats offset_;
};

// Scratch memory for one block of rows at a time, per thread. Rows of features are `stride` apart,
// those of values and results `columns`.
struct FeatureScratch {
  FeatureScratch(int64_t width, int64_t columns)
      : width(width), columns(columns), stride((width + 15) / 16 * 16) {
    thread_local AlignedBuffer space;
    float* next = space.reserve(kFeatureBlock * 2 * (stride + columns));
    for (auto [to, count] : {std::pair{&features, stride},
                             {&grad_features, stride},
                             {&values, columns},
                             {&result, columns}}) {
      *to = next;
      next += kFeatureBlock * count;
    }
  }
  const int64_t width, columns, stride;
  float *features, *grad_features, *values, *result;
};

template <typename T>
void gather_features(const FeatureHead<T>& head, int64_t first, int64_t count, QkvPart part,
                     FeatureScratch& s) {
  for (int64_t i = 0; i < count; ++i) {
    float* to = s.features + i * s.stride;
    if (part == QkvPart::kKey && !head.takes_part(first + i)) {
      std::fill_n(to, s.stride, 0.0f);
      continue;
    }
    const T* x = head.input(first + i, part);
    for_each_run(head.width, [&](int64_t n, auto lanes) {
      store(to + n, head.feature(load_lanes(lanes, x + n)));
    });
  }
}

// A row of `columns` numbers: the sixteens of value(n, lanes), then last, then zeros.
template <typename T, typename Value>
void write_row(const FeatureHead<T>& head, float* to, const Value& value, float last) {
  store(to + head.columns - kLanes, zeros());
  for_each_run(head.width, [&](int64_t n, auto lanes) { store(to + n, value(n, lanes)); });
  to[head.width] = last;
}

template <typename T>
void gather_values(const FeatureHead<T>& head, int64_t first, int64_t count, FeatureScratch& s) {
  for (int64_t i = 0; i < count; ++i) {
    if (!head.takes_part(first + i)) {  // 0 times NaN would be NaN
      std::fill_n(s.values + i * head.columns, head.columns, 0.0f);
      continue;
    }
    const T* v = head.input(first + i, QkvPart::kValue);
    write_row(
        head, s.values + i * head.columns,
        [&](int64_t n, auto lanes) { return load_lanes(lanes, v + n); }, 1.0f);
  }
}

template <typename T>
void write_input_gradient(const FeatureHead<T>& head, int64_t i, QkvPart part,
                          const float* grad_features, T* grad_qkv) {
  const T* x = head.input(i, part);
  T* to = grad_qkv + head.row(i, part);
  for_each_run(head.width, [&](int64_t n, auto lanes) {
    store_lanes(
        to + n, lanes,
        head.through_feature(load_lanes(lanes, grad_features + n), load_lanes(lanes, x + n)));
  });
}

template <typename Body>
void for_each_block(const FeatureRows& rows, const Body& body) {
  for (int64_t first = rows.begin; first < rows.end; first += kFeatureBlock) {
    body(first, std::min(kFeatureBlock, rows.end - first));
  }
}

template <typename Products, typename T>
void sum_features(const FeatureAttention<T>& p, const FeatureRows& rows, float* sums) {
  const FeatureHead<T> head(p, rows);
  FeatureScratch s(head.width, head.columns);
  Products products(s);
  for_each_block(rows, [&](int64_t first, int64_t count) {
    gather_features(head, first, count, QkvPart::kKey, s);
    gather_values(head, first, count, s);
    products.add_to_sums(count, first > rows.begin, sums);
  });
  products.finish_sums(sums);
}

template <typename Products, typename T>
void attend_features(const FeatureAttention<T>& p, const FeatureRows& rows, const float* sums,
                     T* out) {
  const FeatureHead<T> head(p, rows);
  FeatureScratch s(head.width, head.columns);
  Products products(s);
  products.take_sums(sums);
  for_each_block(rows, [&](int64_t first, int64_t count) {
    gather_features(head, first, count, QkvPart::kQuery, s);
    products.times_sums(count, 0);
    for (int64_t i = 0; i < count; ++i) {
      const float* row = s.result + i * head.columns;
      const Floats inverse = broadcast(head.inverse(row[head.width]));
      T* to = out + head.out_row(first + i);
      for_each_run(head.width, [&](int64_t n, auto lanes) {
        store_lanes(to + n, lanes, load(row + n) * inverse);
      });
    }
  });
}

template <typename Products, typename T>
void query_gradients(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                     const float* sums, float* grad_sums) {
  const FeatureHead<T> head(p.problem, rows);
  FeatureScratch s(head.width, head.columns);
  Products products(s);
  products.take_sums(sums);
  products.take_transposed(sums);
  products.split_values();
  for_each_block(rows, [&](int64_t first, int64_t count) {
    gather_features(head, first, count, QkvPart::kQuery, s);
    products.times_sums(count, head.columns - kLanes);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = head.out_row(first + i);
      const float sum = s.result[i * head.columns + head.width];
      const Floats inverse = broadcast(head.inverse(sum));
      Floats of_sum = zeros();
      float* row = s.values + i * head.columns;
      write_row(
          head, row,
          [&](int64_t n, auto lanes) {
            const Floats grad = load_lanes(lanes, p.grad + at + n) * inverse;
            of_sum = subtract_product(of_sum, grad, load_lanes(lanes, p.out + at + n));
            return grad;
          },
          0.0f);
      row[head.width] = sum_of_lanes(of_sum);
    }
    products.add_to_sums(count, first > rows.begin, grad_sums);
    products.make_grad_features(count);
    for (int64_t i = 0; i < count; ++i) {
      write_input_gradient(head, first + i, QkvPart::kQuery, s.grad_features + i * s.stride,
                           p.grad_qkv);
    }
  });
  products.finish_sums(grad_sums);
}

template <typename Products, typename T>
void key_gradients(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                   const float* grad_sums) {
  const FeatureHead<T> head(p.problem, rows);
  FeatureScratch s(head.width, head.columns);
  Products products(s);
  products.take_sums(grad_sums);
  products.take_transposed(grad_sums);
  for_each_block(rows, [&](int64_t first, int64_t count) {
    gather_features(head, first, count, QkvPart::kKey, s);
    gather_values(head, first, count, s);
    products.make_grad_features(count);
    products.times_sums(count, 0);
    for (int64_t i = 0; i < count; ++i) {
      T* to = p.grad_qkv + head.row(first + i, QkvPart::kValue);
      if (!head.takes_part(first + i)) {
        std::fill_n(to, head.width, T(0.0f));
        std::fill_n(p.grad_qkv + head.row(first + i, QkvPart::kKey), head.width, T(0.0f));
        continue;
      }
      write_input_gradient(head, first + i, QkvPart::kKey, s.grad_features + i * s.stride,
                           p.grad_qkv);
      for_each_run(head.width, [&](int64_t n, auto lanes) {
        store_lanes(to + n, lanes, load(s.result + i * head.columns + n));
      });
    }
  });
}

template <typename Products, typename T>
FeatureParts<T> parts_of() {
  return {sum_features<Products, T>, attend_features<Products, T>, query_gradients<Products, T>,
          key_gradients<Products, T>};
}

}  // namespace lra::kernels::LRA_ISA
