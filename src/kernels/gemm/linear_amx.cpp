#include "kernels/gemm/linear_tiles.h"
#include "kernels/simd/tiles_amx.h"

namespace lra::kernels::amx {

void linear_rows(const LinearRows& problem) { LinearOnTiles<HardwareTiles>(problem).run(); }

}  // namespace lra::kernels::amx
