#include "ops/sorted_runs.h"

#include "base/rng.h"
#include "kernels/sorting/hash_buckets.h"
#include "ops/dispatch.h"
#include "ops/precision.h"

namespace lra::ops {
namespace {

Tensor draw_rotations_impl(const Tensor& x_BLHE, int64_t rounds, int64_t columns, int64_t key) {
  LRA_CHECK_EQ(x_BLHE.dim(), 4);
  const int64_t heads = x_BLHE.size(2), dim = x_BLHE.size(3);
  Tensor rotations = at::empty({heads, rounds, dim, columns}, at::kFloat);
  float* to = rotations.mutable_data_ptr<float>();
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t r = 0; r < rounds; ++r) {
      RandomStream stream(derive_key(static_cast<uint64_t>(key), RandomUse::kMixer,
                                     static_cast<uint32_t>(h), static_cast<uint32_t>(r)));
      for (int64_t n = 0; n < dim * columns; ++n) *to++ = static_cast<float>(stream.normal());
    }
  }
  return rotations;
}

Tensor hash_buckets_impl(const Tensor& x_BLHE, const Tensor& rotations,
                         const MaybeTensor& mask_BL) {
  LRA_CHECK_EQ(x_BLHE.dim(), 4);
  LRA_CHECK_EQ(rotations.dim(), 4);
  LRA_CHECK_EQ(rotations.size(0), x_BLHE.size(2));
  LRA_CHECK_EQ(rotations.size(2), x_BLHE.size(3));
  LRA_CHECK(rotations.is_contiguous() && rotations.scalar_type() == wide_type(x_BLHE));
  const Tensor x = x_BLHE.stride(-1) == 1 ? x_BLHE : x_BLHE.contiguous();
  const kernels::HashShape shape{x.size(0), x.size(2),         x.size(1),
                                 x.size(3), rotations.size(1), rotations.size(3)};
  const Tensor mask = mask_BL ? mask_BL->contiguous() : Tensor();
  if (mask.defined()) {
    LRA_CHECK(mask.scalar_type() == at::kByte);
    LRA_CHECK_EQ(mask.numel(), shape.batch * shape.length);
  }
  Tensor buckets = at::empty({shape.rounds, shape.batch, shape.heads, shape.length}, at::kInt);
  with_float_type(x, "lra::hash_buckets", [&]<typename T>(T) {
    kernels::hash_buckets<T>(shape, {const_data<T>(x), x.stride(0), x.stride(2), x.stride(1)},
                             rotations.const_data_ptr<kernels::Wide<T>>(),
                             mask.defined() ? mask.const_data_ptr<uint8_t>() : nullptr,
                             buckets.mutable_data_ptr<int32_t>());
  });
  return buckets;
}

std::vector<Tensor> sorted_runs_impl(const Tensor& buckets, int64_t num_buckets, int64_t chunk,
                                     bool causal, bool lone_rows_see_themselves) {
  LRA_CHECK(buckets.dim() == 4 && buckets.scalar_type() == at::kInt && buckets.is_contiguous());
  const int64_t planes = buckets.size(1) * buckets.size(2), length = buckets.size(3);
  std::vector<Tensor> rounds;
  std::vector<int32_t*> data;
  for (int64_t r = 0; r < buckets.size(0); ++r) {
    rounds.push_back(at::empty({planes, 3 + 3 * r, length}, at::kInt));
    data.push_back(rounds.back().mutable_data_ptr<int32_t>());
  }
  kernels::make_sorted_runs(buckets.const_data_ptr<int32_t>(), planes, length, num_buckets,
                            {chunk, causal, lone_rows_see_themselves}, buckets.size(0),
                            data.data());
  return rounds;
}

}  // namespace

Tensor draw_rotations(const Tensor& x_BLHE, int64_t rounds, int64_t columns, uint64_t key) {
  return dispatch<"lra::draw_rotations", draw_rotations_impl>(x_BLHE.detach(), rounds, columns,
                                                              static_cast<int64_t>(key));
}

Tensor hash_buckets(const Tensor& x_BLHE, const Tensor& rotations, const Tensor& mask_BL) {
  const at::NoGradGuard no_grad;
  return dispatch<"lra::hash_buckets", hash_buckets_impl>(x_BLHE.detach(), rotations,
                                                          optional_tensor(mask_BL));
}

std::vector<Tensor> sorted_runs(const Tensor& buckets, int64_t num_buckets, const RunRules& rules) {
  return dispatch<"lra::sorted_runs", sorted_runs_impl>(
      buckets, num_buckets, rules.chunk, rules.causal, rules.lone_rows_see_themselves);
}

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("draw_rotations(Tensor x, int rounds, int columns, int key) -> Tensor");
  m.def("hash_buckets(Tensor x, Tensor rotations, Tensor? mask=None) -> Tensor");
  m.def(
      "sorted_runs(Tensor buckets, int num_buckets, int chunk=0, bool causal=False, bool "
      "lone_rows_see_themselves=False) -> Tensor[]");
}

TORCH_LIBRARY_IMPL(lra, CPU, m) {
  m.impl("draw_rotations", draw_rotations_impl);
  m.impl("hash_buckets", hash_buckets_impl);
  m.impl("sorted_runs", sorted_runs_impl);
}

}  // namespace lra::ops
