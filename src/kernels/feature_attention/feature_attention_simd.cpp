// Blocks of rows whose features stay in the cache, and the small products of gemm.h.
#include <algorithm>
#include <utility>

#include "kernels/aligned_buffer.h"
#include "kernels/feature_attention/feature_attention_rows.h"
#include "kernels/gemm/gemm.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

constexpr int64_t kBlock = 64;

// The rows of one head, and its feature map.
template <typename T>
class Head : public FeatureHeadRows<T, kIsa> {
 public:
  Head(const FeatureAttention<T>& p, const FeatureRows& rows)
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
// those of values and sums `columns`.
struct Scratch {
  Scratch(int64_t width, int64_t columns) : stride((width + 15) / 16 * 16) {
    thread_local AlignedBuffer space;
    float* next = space.reserve(kBlock * 2 * (stride + columns) + columns * stride);
    for (auto [to, count] : {std::pair{&features, kBlock * stride},
                             {&grad_features, kBlock * stride},
                             {&values, kBlock * columns},
                             {&result, kBlock * columns},
                             {&transposed, columns * stride}}) {
      *to = next;
      next += count;
    }
  }
  const int64_t stride;
  float *features, *grad_features, *values, *result, *transposed;
};

template <typename T>
void gather_features(const Head<T>& head, int64_t first, int64_t count, QkvPart part, Scratch& s) {
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
void write_row(const Head<T>& head, float* to, const Value& value, float last) {
  store(to + head.columns - kLanes, zeros());
  for_each_run(head.width, [&](int64_t n, auto lanes) { store(to + n, value(n, lanes)); });
  to[head.width] = last;
}

template <typename T>
void gather_values(const Head<T>& head, int64_t first, int64_t count, Scratch& s) {
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

// Transposes [width, columns] to [width + 1, stride].
template <typename T>
void transpose(const Head<T>& head, const float* sums, Scratch& s) {
  for (int64_t c = 0; c <= head.width; ++c) {
    float* to = s.transposed + c * s.stride;
    std::fill_n(to + s.stride - kLanes, kLanes, 0.0f);
    for (int64_t r = 0; r < head.width; ++r) to[r] = sums[r * head.columns + c];
  }
}

// sums (+)= features^T values
template <typename T>
void add_to_sums(const Head<T>& head, int64_t count, const Scratch& s, bool accumulate,
                 float* sums) {
  gemm({head.width, head.columns, count},
       {s.features, 1, s.stride, s.values, head.columns, kLanes, sums, head.columns}, accumulate);
}

// grad_features = values transposed
template <typename T>
void make_grad_features(const Head<T>& head, int64_t count, const Scratch& s) {
  gemm({count, s.stride, head.width + 1},
       {s.values, head.columns, 1, s.transposed, s.stride, kLanes, s.grad_features, s.stride},
       false);
}

// result = features times the columns of sums from `first` on
template <typename T>
void times_sums(const Head<T>& head, int64_t count, const float* sums, int64_t first,
                const Scratch& s) {
  gemm(
      {count, head.columns - first, head.width},
      {s.features, s.stride, 1, sums + first, head.columns, kLanes, s.result + first, head.columns},
      false);
}

template <typename T>
void write_input_gradient(const Head<T>& head, int64_t i, QkvPart part, const float* grad_features,
                          T* grad_qkv) {
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
  for (int64_t first = rows.begin; first < rows.end; first += kBlock) {
    body(first, std::min(kBlock, rows.end - first));
  }
}

template <typename T>
void sum_features(const FeatureAttention<T>& p, const FeatureRows& rows, float* sums) {
  const Head<T> head(p, rows);
  Scratch s(head.width, head.columns);
  for_each_block(rows, [&](int64_t first, int64_t count) {
    gather_features(head, first, count, QkvPart::kKey, s);
    gather_values(head, first, count, s);
    add_to_sums(head, count, s, first > rows.begin, sums);
  });
}

template <typename T>
void attend_features(const FeatureAttention<T>& p, const FeatureRows& rows, const float* sums,
                     T* out) {
  const Head<T> head(p, rows);
  Scratch s(head.width, head.columns);
  for_each_block(rows, [&](int64_t first, int64_t count) {
    gather_features(head, first, count, QkvPart::kQuery, s);
    times_sums(head, count, sums, 0, s);
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

template <typename T>
void query_gradients(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                     const float* sums, float* grad_sums) {
  const Head<T> head(p.problem, rows);
  Scratch s(head.width, head.columns);
  transpose(head, sums, s);
  for_each_block(rows, [&](int64_t first, int64_t count) {
    gather_features(head, first, count, QkvPart::kQuery, s);
    times_sums(head, count, sums, head.columns - kLanes, s);
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
    add_to_sums(head, count, s, first > rows.begin, grad_sums);
    make_grad_features(head, count, s);
    for (int64_t i = 0; i < count; ++i) {
      write_input_gradient(head, first + i, QkvPart::kQuery, s.grad_features + i * s.stride,
                           p.grad_qkv);
    }
  });
}

template <typename T>
void key_gradients(const FeatureAttentionBackward<T>& p, const FeatureRows& rows,
                   const float* grad_sums) {
  const Head<T> head(p.problem, rows);
  Scratch s(head.width, head.columns);
  transpose(head, grad_sums, s);
  for_each_block(rows, [&](int64_t first, int64_t count) {
    gather_features(head, first, count, QkvPart::kKey, s);
    gather_values(head, first, count, s);
    make_grad_features(head, count, s);
    times_sums(head, count, grad_sums, 0, s);
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

}  // namespace

template <typename T>
FeatureParts<T> feature_parts() {
  return {sum_features<T>, attend_features<T>, query_gradients<T>, key_gradients<T>};
}
template FeatureParts<float> feature_parts();
template FeatureParts<Bf16> feature_parts();

}  // namespace lra::kernels::LRA_ISA
