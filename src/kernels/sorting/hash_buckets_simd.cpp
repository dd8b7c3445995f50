#include <limits>

#include "kernels/simd/simd.h"
#include "kernels/sorting/hash_buckets.h"

namespace lra::kernels::LRA_ISA {

int64_t index_of_largest(const float* values, int64_t count) {
  Floats most = broadcast(-1.0f);
  Words where = broadcast(0), index = counting();
  for (int64_t n = 0; n < count; n += kLanes) {
    const Lanes lanes = lanes_between(0, count - n);
    const Floats size = abs(load_lanes(lanes, values + n));
    const auto larger = static_cast<Lanes>(greater(size, most) & lanes);
    most = select(larger, size, most);
    where = select(larger, index, where);
    index = add(index, broadcast(static_cast<int32_t>(kLanes)));
  }
  const Floats largest = broadcast(max_of_lanes(most));
  const Words last = broadcast(std::numeric_limits<int32_t>::max());
  return min_of_lanes(select(equal(most, largest), where, last));
}

}  // namespace lra::kernels::LRA_ISA
