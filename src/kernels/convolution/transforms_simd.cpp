#include "kernels/convolution/transform_task.h"
#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {
namespace {

struct Row {
  using Number = float;

  static Row zero() { return {zeros()}; }
  static Row broadcast(float x) { return {LRA_ISA::broadcast(x)}; }
  static Row load(const float* from) { return {LRA_ISA::load(from)}; }
  void store(float* to) const { LRA_ISA::store(to, of); }
  template <typename T>
  static Row load_some(const T* from, int64_t count) {
    return {count == kLanes ? load_lanes(AllLanes{}, from)
                            : load_lanes(lanes_between(0, count), from)};
  }
  template <typename T>
  void store_some(T* to, int64_t count) const {
    count == kLanes ? store_lanes(to, AllLanes{}, of)
                    : store_lanes(to, lanes_between(0, count), of);
  }
  friend Row operator+(Row a, Row b) { return {a.of + b.of}; }
  friend Row operator-(Row a, Row b) { return {a.of - b.of}; }
  friend Row product(Row a, Row b) { return {a.of * b.of}; }
  friend Row multiply_add(Row a, Row b, Row c) { return {LRA_ISA::multiply_add(a.of, b.of, c.of)}; }
  friend Row subtract_product(Row c, Row a, Row b) {
    return {LRA_ISA::subtract_product(c.of, a.of, b.of)};
  }

  Floats of;
};

}  // namespace

template <typename T>
TransformParts<T> transform_parts() {
  return TransformOf<Row, T>::parts();
}

template TransformParts<float> transform_parts();
template TransformParts<Bf16> transform_parts();

}  // namespace lra::kernels::LRA_ISA
