// Settings of layers, which need no tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lra::layers {

struct AttentionShape {
  int64_t heads = 0;     // H
  int64_t head_dim = 0;  // E; H * E need not equal the width of the model
};

// The kinds of GatedOutput (layers/gated_output.h).
inline std::vector<std::string> gated_outputs() {
  return {"glu", "half_glu1", "half_glu2", "linear", "none"};
}

}  // namespace lra::layers
