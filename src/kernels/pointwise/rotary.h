// Rotary encoding of positions (Su et al. 2021, arXiv:2104.09864, section 3.2): pairs of
// neighboring channels of each head turned by angles that grow with the position.
#pragma once

#include <cstdint>

#include "kernels/simd/bf16.h"

namespace lra::kernels {

template <typename T>
struct Rotary {
  int64_t batch = 0, length = 0, heads = 0;
  int64_t width = 0;               // of a head, even
  int64_t row_stride = 0;          // of x, [batch, length] rows of heads * width numbers
  const T* x = nullptr;            // [batch, length, heads, width]
  const Wide<T>* table = nullptr;  // [length, width]: sine and cosine of each pair
  bool back = false;               // turned by the negative angles
};

// y_2c = x_2c cos - x_2c+1 sin, y_2c+1 = x_2c sin + x_2c+1 cos, in rows without gaps. The same bits
// at any number of threads.
template <typename T>
void rotary(const Rotary<T>& p, T* y);

}  // namespace lra::kernels
