#include "layers/positions.h"

#include <cmath>
#include <vector>

#include "base/error.h"
#include "layers/on_device.h"
#include "ops/precision.h"

namespace lra::layers {

at::Tensor sinusoid_table(int64_t length, int64_t dim, at::ScalarType type) {
  std::vector<double> table;
  table.reserve(static_cast<size_t>(length * dim));
  for (int64_t p = 0; p < length; ++p) {
    for (int64_t c = 0; c < dim; ++c) {
      const double frequency =
          std::pow(10000.0, -static_cast<double>(c / 2 * 2) / static_cast<double>(dim));
      const double angle = static_cast<double>(p) * frequency;
      table.push_back(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  // The numbers exist where tensors have shapes only, as in torch.compile's tracing.
  return at::from_blob(table.data(), {length, dim}, at::kDouble).to(type, false, true);
}

at::Tensor rotated(const at::Tensor& x_BLHE) {
  const int64_t length = x_BLHE.size(1), width = x_BLHE.size(3);
  LRA_CHECK_EQ(width % 2, 0);
  const at::Tensor table_LE = sinusoid_table(length, width, ops::wide_type(x_BLHE));
  const at::Tensor table_L1EE =
      on_device(table_LE, x_BLHE.device()).to(x_BLHE.scalar_type()).view({length, 1, width / 2, 2});
  const at::Tensor sine = table_L1EE.select(3, 0), cosine = table_L1EE.select(3, 1);
  const auto pair = x_BLHE.unflatten(3, {width / 2, 2}).unbind(4);
  return at::stack({pair[0] * cosine - pair[1] * sine, pair[0] * sine + pair[1] * cosine}, 4)
      .flatten(3);
}

}  // namespace lra::layers
