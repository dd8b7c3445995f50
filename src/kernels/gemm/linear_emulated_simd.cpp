#include "kernels/gemm/linear_tiles.h"

namespace lra::kernels::LRA_ISA::emulated {

void linear_rows(const LinearRows& problem) { LinearOnTiles<EmulatedTiles>(problem).run(); }

}  // namespace lra::kernels::LRA_ISA::emulated
