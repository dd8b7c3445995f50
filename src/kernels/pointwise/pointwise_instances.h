// The operators of pointwise.h for one element type, to be instantiated in the namespace of an
// implementation.
#pragma once

#define LRA_INSTANTIATE_POINTWISE(T)                                                           \
  template void gelu_dropout<T>(int64_t, const T*, T*, const Dropout&);                        \
  template void gelu_dropout_backward<T>(int64_t, const T*, const T*, T*, T*, const Dropout&); \
  template void dropout_add<T>(int64_t, const T*, const T*, T*, const Dropout&);               \
  template void apply_dropout<T>(int64_t, const T*, T*, const Dropout&);
