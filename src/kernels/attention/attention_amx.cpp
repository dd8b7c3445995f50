#include "kernels/attention/attention_on_tiles.h"
#include "kernels/simd/tiles_amx.h"

namespace lra::kernels::amx {

void attention_forward(const AttentionProblem& problem, const AttentionForward<Bf16>& args) {
  run_forward<TileProducts<HardwareTiles>>(problem, args);
}

void attention_backward(const AttentionProblem& problem, const AttentionBackward<Bf16>& args) {
  run_backward<TileProducts<HardwareTiles>>(problem, args);
}

}  // namespace lra::kernels::amx
