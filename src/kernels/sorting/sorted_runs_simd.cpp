#include "kernels/sorting/sorted_runs.h"

#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

void hide_earlier_pairs(const PlaneRuns& runs, int64_t query, int64_t first_key, int64_t vectors,
                        uint16_t* lanes) {
  for (int64_t e = 0; e < runs.num_earlier; ++e) {
    const int32_t begin = runs.earlier_begin(e)[query], end = runs.earlier_end(e)[query];
    if (begin >= end) continue;
    const int32_t* rank = runs.earlier_rank(e);
    const Words begins = broadcast(begin), width = broadcast(end - begin);
    for (int64_t v = 0; v < vectors; ++v) {
      const int64_t key = first_key + v * kLanes;
      // Lanes without a row are not visible, so they are not read either.
      const Words ranks = load_lanes(lanes[v], rank + key);
      // Unsigned, so that ranks below `begin` are large: one comparison for both ends.
      const Lanes seen = below_unsigned(subtract(ranks, begins), width);
      lanes[v] = static_cast<uint16_t>(lanes[v] & ~seen);
    }
  }
}

}  // namespace lra::kernels::LRA_ISA
