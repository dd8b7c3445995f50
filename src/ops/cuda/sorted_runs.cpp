// Hash buckets and sorted runs on a device: kernels/sorting/sorted_runs.h composed of the library's
// sorts and gathers.
#include "ops/cuda/device.h"

namespace lra::ops::device {
namespace {

Tensor draw_rotations(const Tensor& x, int64_t rounds, int64_t columns, int64_t key) {
  const OnDeviceOf device(x);
  LRA_CHECK_EQ(x.dim(), 4);
  const int64_t heads = x.size(2), dim = x.size(3);
  Tensor rotations = at::empty({heads, rounds, dim, columns}, x.options().dtype(at::kFloat));
  kernels::cuda::draw_rotations(heads, rounds, dim * columns, static_cast<uint64_t>(key),
                                rotations.mutable_data_ptr<float>(), device.stream());
  return rotations;
}

Tensor hash_buckets(const Tensor& x_in, const Tensor& rotations, const MaybeTensor& mask_in) {
  const OnDeviceOf device(x_in, {rotations, mask_in});
  const Tensor x = x_in.stride(-1) == 1 ? x_in : x_in.contiguous();
  LRA_CHECK_EQ(x.dim(), 4);
  LRA_CHECK_EQ(rotations.dim(), 4);
  LRA_CHECK_EQ(rotations.size(0), x.size(2));
  LRA_CHECK_EQ(rotations.size(2), x.size(3));
  LRA_CHECK(rotations.is_contiguous() && rotations.scalar_type() == at::kFloat);
  const kernels::HashShape shape{x.size(0), x.size(2),         x.size(1),
                                 x.size(3), rotations.size(1), rotations.size(3)};
  const Tensor mask = mask_in ? mask_in->contiguous() : Tensor();
  LRA_CHECK(!mask.defined() || mask.numel() == shape.batch * shape.length);
  Tensor buckets = at::empty({shape.rounds, shape.batch, shape.heads, shape.length},
                             x.options().dtype(at::kInt));
  with_device_type(x, "lra::hash_buckets", [&]<typename T>(T) {
    kernels::cuda::hash_buckets<T>(shape, {const_data<T>(x), x.stride(0), x.stride(2), x.stride(1)},
                                   rotations.const_data_ptr<float>(),
                                   mask.defined() ? mask.const_data_ptr<uint8_t>() : nullptr,
                                   buckets.mutable_data_ptr<int32_t>(), device.stream());
  });
  return buckets;
}

// One round, by rank: all [planes, L]. rank[order[n]] = n.
struct Round {
  Tensor order, rank, begin, end;
};

Round round_of(const Tensor& buckets_PL, int64_t num_buckets, int64_t chunk, bool causal) {
  auto [sorted, order] = at::sort(buckets_PL, /*stable=*/true, /*dim=*/-1, /*descending=*/false);
  const Tensor places =
      at::arange(sorted.size(1), sorted.options().dtype(at::kLong)).expand_as(order);
  const Tensor rank = order.argsort(int64_t{1});
  Tensor begin = at::searchsorted(sorted, sorted, false, false);
  Tensor end = at::searchsorted(sorted, sorted, false, true);
  if (chunk > 0) {
    const Tensor number = places.floor_divide(chunk);
    begin = at::maximum(begin, (number - 1) * chunk);
    end = at::minimum(end, (number + 1) * chunk);
  }
  if (causal) end = places;
  const Tensor used = (end - begin).gt(causal ? 0 : 1).logical_and(sorted.ne(num_buckets));
  return {order, rank, begin * used, end * used};
}

// Rows whose run is empty in every round see themselves in the last.
void show_lone_rows_themselves(const Tensor& last_buckets, int64_t num_buckets,
                               std::vector<Round>& rounds) {
  Round& last = rounds.back();
  Tensor lone = last_buckets.gather(1, last.order).ne(num_buckets);
  for (const Round& round : rounds) {
    lone = lone.logical_and(round.end.gather(1, round.rank.gather(1, last.order)).eq(0));
  }
  const Tensor places = at::arange(lone.size(1), last.end.options()).expand_as(last.end);
  last.begin = at::where(lone, places, last.begin);
  last.end = at::where(lone, places + 1, last.end);
}

std::vector<Tensor> sorted_runs(const Tensor& buckets, int64_t num_buckets, int64_t chunk,
                                bool causal, bool lone_rows_see_themselves) {
  LRA_CHECK(buckets.dim() == 4 && buckets.scalar_type() == at::kInt && buckets.is_contiguous());
  const OnDeviceOf device(buckets);
  const Tensor buckets_RPL = buckets.flatten(1, 2);
  std::vector<Round> rounds;
  for (int64_t r = 0; r < buckets.size(0); ++r) {
    rounds.push_back(round_of(buckets_RPL[r], num_buckets, chunk, causal));
  }
  if (lone_rows_see_themselves) {
    show_lone_rows_themselves(buckets_RPL[buckets.size(0) - 1], num_buckets, rounds);
  }
  std::vector<Tensor> runs;
  for (size_t r = 0; r < rounds.size(); ++r) {
    const Round& round = rounds[r];
    // Narrow before they are copied together.
    const auto narrow = [](const Tensor& line) { return line.to(at::kInt); };
    std::vector<Tensor> lines = {narrow(round.order), narrow(round.begin), narrow(round.end)};
    for (size_t e = 0; e < r; ++e) {
      const Tensor rank = rounds[e].rank.gather(1, round.order);
      lines.insert(lines.end(), {narrow(rank), narrow(rounds[e].begin.gather(1, rank)),
                                 narrow(rounds[e].end.gather(1, rank))});
    }
    runs.push_back(at::stack(lines, 1));
  }
  return runs;
}

}  // namespace

TORCH_LIBRARY_IMPL(lra, LRA_DEVICE_KEY, m) {
  m.impl("draw_rotations", draw_rotations);
  m.impl("hash_buckets", hash_buckets);
  m.impl("sorted_runs", sorted_runs);
}

}  // namespace lra::ops::device
