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

at::Tensor rotary_table(const at::Tensor& x_BLHE) {
  LRA_CHECK_EQ(x_BLHE.size(3) % 2, 0);
  const at::Tensor table = sinusoid_table(x_BLHE.size(1), x_BLHE.size(3), ops::wide_type(x_BLHE));
  return on_device(table, x_BLHE.device());
}

}  // namespace lra::layers
