#include "ops/scan/gated_scan.h"

#include "ops/fused_function.h"
#include "ops/precision.h"
#include "ops/scan/gated_scan_problem.h"

namespace lra::ops {
namespace {

Tensor gated_scan_cpu(const Tensor& a, const Tensor& v, int64_t reversed_channels,
                      const MaybeTensor& mask) {
  const GatedScanForward scan(a, v, reversed_channels, mask);
  with_float_type(v, "lra::gated_scan", [&]<typename T>(T) {
    kernels::gated_scan_forward<T>(scan.problem<T>(), mutable_data<T>(scan.h));
  });
  return scan.h;
}

std::tuple<Tensor, Tensor> gated_scan_backward_cpu(const Tensor& grad, const Tensor& a,
                                                   const Tensor& h, int64_t reversed_channels,
                                                   const MaybeTensor& mask) {
  const GatedScanGradients scan(grad, a, h, reversed_channels, mask);
  with_float_type(h, "lra::gated_scan",
                  [&]<typename T>(T) { kernels::gated_scan_backward<T>(scan.problem<T>()); });
  return {scan.of_a, scan.of_v};
}

// t [B, L, D] with the last channels turned around along L.
Tensor channels_in_time(const Tensor& t, int64_t reversed_channels) {
  const auto parts = t.split_with_sizes({t.size(2) - reversed_channels, reversed_channels}, 2);
  return at::cat({parts[0], parts[1].flip(1)}, 2);
}

// The positions of t, float or double, in the order of time, 0 at padding.
std::vector<Tensor> rows_in_time(const Tensor& t, const Tensor& like, int64_t reversed_channels,
                                 const MaybeTensor& mask) {
  return channels_in_time(without_padding(t.to(wide_type(like)), mask), reversed_channels)
      .unbind(1);
}

struct GatedScanFunction : FusedFunction<GatedScanFunction, composed_gated_scan> {
  static constexpr const char* kName = "lra::gated_scan";
  static constexpr size_t kMask = 2;

  static variable_list fused(const Tensor& a, const Tensor& v, int64_t reversed_channels,
                             const MaybeTensor& mask) {
    return variable_list(
        2, dispatch<"lra::gated_scan", gated_scan_cpu>(a, v, reversed_channels, mask));
  }
  static auto gradients(const Tensor& grad, const variable_list& h, const Tensor& a, const Tensor&,
                        int64_t reversed_channels, const MaybeTensor& mask) {
    return dispatch<"lra::gated_scan_backward", gated_scan_backward_cpu>(grad, a, h[0],
                                                                         reversed_channels, mask);
  }
};

}  // namespace

void check_gated_scan(const Tensor& a, const Tensor& v, int64_t reversed_channels,
                      const MaybeTensor& mask) {
  LRA_CHECK(v.dim() == 3);
  LRA_CHECK_EQ(a.sizes(), v.sizes());
  LRA_CHECK(a.scalar_type() == wide_type(v));
  LRA_CHECK(reversed_channels >= 0 && reversed_channels <= v.size(2));
  check_mask(mask, v.size(0), v.size(1));
}

// Padding becomes a = v = 0, which leaves the state 0.
Tensor composed_gated_scan(const Tensor& a_in, const Tensor& v_in, int64_t reversed_channels,
                           const MaybeTensor& mask) {
  check_gated_scan(a_in, v_in, reversed_channels, mask);
  const auto a = rows_in_time(a_in, v_in, reversed_channels, mask),
             v = rows_in_time(v_in, v_in, reversed_channels, mask);
  std::vector<Tensor> rows;
  for (size_t t = 0; t < v.size(); ++t) {
    rows.push_back(t == 0 ? v[0] : a[t] * rows.back() + v[t]);
  }
  if (rows.empty()) return at::zeros_like(v_in);
  const Tensor h = channels_in_time(at::stack(rows, 1), reversed_channels);
  return without_padding(h, mask).to(v_in.scalar_type()).contiguous();
}

std::tuple<Tensor, Tensor> composed_gated_scan_backward(const Tensor& grad, const Tensor& a_in,
                                                        const Tensor& h_in,
                                                        int64_t reversed_channels,
                                                        const MaybeTensor& mask) {
  check_gated_scan(a_in, h_in, reversed_channels, mask);
  const auto rows = [&](const Tensor& t) { return rows_in_time(t, h_in, reversed_channels, mask); };
  const auto a = rows(a_in), h = rows(h_in);
  auto of_v = rows(grad), of_a = a;
  for (size_t t = a.size(); t-- > 0;) {
    if (t + 1 < a.size()) of_v[t] = of_v[t] + a[t + 1] * of_v[t + 1];
    of_a[t] = t > 0 ? of_v[t] * h[t - 1] : at::zeros_like(of_v[t]);
  }
  if (a.empty()) return {at::zeros_like(a_in), at::zeros_like(h_in)};
  const auto joined = [&](const std::vector<Tensor>& all, const Tensor& like) {
    return without_padding(channels_in_time(at::stack(all, 1), reversed_channels), mask)
        .to(like.scalar_type())
        .contiguous();
  };
  return {joined(of_a, a_in), joined(of_v, h_in)};
}

Tensor gated_scan(const Tensor& a_BLD, const Tensor& v_BLD, int64_t reversed_channels,
                  const Tensor& mask_BL) {
  return dispatch<"lra::gated_scan", gated_scan_cpu>(a_BLD, v_BLD, reversed_channels,
                                                     optional_tensor(mask_BL));
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("gated_scan(Tensor a, Tensor v, int reversed_channels=0, Tensor? mask=None) -> Tensor",
        composed_gated_scan);
  m.def(
      "gated_scan_backward(Tensor grad, Tensor a, Tensor h, int reversed_channels, Tensor? mask) "
      "-> (Tensor, Tensor)",
      composed_gated_scan_backward);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("gated_scan", gated_scan_cpu);
  m.impl("gated_scan_backward", gated_scan_backward_cpu);
}

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("gated_scan", applies<GatedScanFunction>(gated_scan_cpu));
}

}  // namespace lra::ops
