// Arguments of a layer besides its input.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "ops/attention/attention.h"
#include "ops/libtorch.h"

namespace lra::layers {

struct Context {
  at::Tensor mask_BL = {};       // uint8, 1 = token, 0 = padding; undefined: no padding
  double attention_dropout = 0;  // 0 outside training
  uint64_t key = 0;              // for randomness in this layer, step and micro-batch
  uint64_t step_key = 0;         // for draws that all examples of the step share in this layer
  bool training = false;         // noise that a mechanism adds while it learns, batch statistics
  int64_t step = 0;              // of training, for draws that are repeated every few steps
  // int32, on the CPU: how many positions mask_BL has 1 at, all of them first. May be undefined.
  at::Tensor lengths_B = {};
  uint32_t part = 0;  // micro-batch of the step
  // The rate of the block, 0 outside training, for layers that drop out by themselves; tied: a
  // channel is dropped along the whole sequence (feed_forward.h).
  double dropout = 0;
  bool tied_dropout = false;
  // The residual stream, where the layer sees a norm of it; undefined: the layer's input.
  at::Tensor stream_BLD = {};
};

// Dropout of one of a layer's attentions, with its own key.
inline ops::AttentionDropout attention_dropout(const Context& context, uint32_t part) {
  return {context.attention_dropout, derive_key(context.key, RandomUse::kDropout, part)};
}

}  // namespace lra::layers
