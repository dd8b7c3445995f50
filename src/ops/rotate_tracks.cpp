#include "ops/rotate_tracks.h"

#include "ops/rotate_tracks_problem.h"

namespace lra::ops {
namespace {

using Mask = MaybeTensor;

Tensor rotate_on_cpu(const Tensor& x_in, int64_t tracks, const Mask& mask, bool back) {
  return rotated_by([](const auto&... arguments) { kernels::rotate(arguments...); }, x_in, tracks,
                    mask, back);
}

// Row numbers of [B L, ...] that come to the place of each row when examples of the lengths [B, 1]
// are rotated by `offset`. Padding stays where it is.
Tensor rotated_rows(const Tensor& lengths_B1, int64_t length, int64_t offset) {
  const auto options = lengths_B1.options();
  const Tensor place = at::arange(length, options);
  const Tensor from =
      at::where(place.lt(lengths_B1), (place + offset).remainder(lengths_B1.clamp_min(1)), place);
  return (from + length * at::arange(lengths_B1.size(0), options).unsqueeze(1)).flatten();
}

Tensor composed_rotation(const Tensor& x, int64_t tracks, const Mask& mask, bool back) {
  check_tracks(x, tracks, mask);
  const int64_t length = x.size(1);
  const Tensor lengths_B1 = mask ? mask->sum(1, /*keepdim=*/true)
                                 : at::full({x.size(0), 1}, length, x.options().dtype(at::kLong));
  std::vector<Tensor> parts = x.flatten(0, 1).tensor_split(tracks, 1);
  for (int64_t m = 1; m < tracks; ++m) {
    Tensor& part = parts[static_cast<size_t>(m)];
    if (part.size(1) == 0) break;
    part = part.index_select(0, rotated_rows(lengths_B1, length, track_offset(m, back)));
  }
  return at::cat(parts, 1).view(x.sizes());
}

Tensor call_rotation(const Tensor& x, int64_t tracks, const Mask& mask, bool back) {
  return dispatch<"lra::rotate_tracks", rotate_on_cpu>(x, tracks, mask, back);
}

// The gradient goes the same way back.
struct RotationFunction : torch::autograd::Function<RotationFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int64_t tracks, const Mask& mask,
                        bool back) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({tensor_or_empty(mask)});
    ctx->saved_data["tracks"] = tracks;
    ctx->saved_data["back"] = back;
    return call_rotation(x, tracks, mask, back);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Mask mask = optional_tensor(ctx->get_saved_variables()[0]);
    return {call_rotation(grads[0], ctx->saved_data["tracks"].toInt(), mask,
                          !ctx->saved_data["back"].toBool()),
            Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor rotate_tracks(const Tensor& x_BLD, int64_t tracks, const Tensor& mask_BL) {
  return call_rotation(x_BLD, tracks, optional_tensor(mask_BL), false);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("rotate_tracks(Tensor x, int tracks, Tensor? mask=None, bool back=False) -> Tensor",
        composed_rotation);
}

TORCH_LIBRARY_IMPL(lra, CPU, m) { m.impl("rotate_tracks", rotate_on_cpu); }

TORCH_LIBRARY_IMPL(lra, Autograd, m) {
  m.impl("rotate_tracks", applies<RotationFunction>(rotate_on_cpu));
}

}  // namespace lra::ops
