#include "kernels/attention/attention_on_tiles.h"

namespace lra::kernels::LRA_ISA::emulated {

void attention_forward(const AttentionProblem& problem, const AttentionForward<Bf16>& args) {
  run_forward<TileProducts<EmulatedTiles>>(problem, args);
}

void attention_backward(const AttentionProblem& problem, const AttentionBackward<Bf16>& args) {
  run_backward<TileProducts<EmulatedTiles>>(problem, args);
}

}  // namespace lra::kernels::LRA_ISA::emulated
