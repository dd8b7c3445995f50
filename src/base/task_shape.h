// Shape of a task as a model sees it.
#pragma once

#include <cstdint>
#include <optional>

namespace lra {

// Sequences of real numbers instead of tokens: pixel p is (p - zero) * scale.
struct ValueInput {
  double zero = 0, scale = 1;
};

struct TaskShape {
  int64_t length = 0;      // tokens fed per sequence, without CLS
  int64_t vocabulary = 0;  // token ids are 0 .. vocabulary - 1
  int64_t num_classes = 0;
  int64_t num_towers = 1;   // 2: two documents, one label
  bool has_padding = true;  // id 0 is padding; false for images, where every position is a pixel
  std::optional<ValueInput> values = {};  // how tokens become numbers; none: they stay tokens
};

}  // namespace lra
