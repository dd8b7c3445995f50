#include "ops/rotate_tracks.h"

#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

// One number after another.
Tensor rotated(const Tensor& x, int64_t tracks, const Tensor& mask) {
  const int64_t dim = x.size(2);
  std::vector<Tensor> numbers;
  for (int64_t b = 0; b < x.size(0); ++b) {
    const int64_t tokens = mask.defined() ? mask[b].sum().item<int64_t>() : x.size(1);
    for (int64_t p = 0; p < x.size(1); ++p) {
      for (int64_t c = 0, track = 0, end = 0; c < dim; ++c) {
        while (c >= end + dim / tracks + (track < dim % tracks ? 1 : 0)) {
          end += dim / tracks + (track < dim % tracks ? 1 : 0);
          ++track;
        }
        const int64_t offset = track == 0 ? 0 : int64_t{1} << (track - 1);
        numbers.push_back(x[b][p < tokens ? (p + offset) % tokens : p][c]);
      }
    }
  }
  return at::stack(numbers).view(x.sizes());
}

// Tracks that are wider than sixteen bytes, narrower, of unequal width and empty; offsets beyond
// the tokens.
TEST(RotateTracks, AgreesWithItsDefinition) {
  struct Sizes {
    int64_t length, dim, tracks;
  };
  for (const Sizes& s :
       {Sizes{1, 3, 1}, Sizes{9, 7, 4}, Sizes{5, 2, 3}, Sizes{12, 40, 4}, Sizes{7, 66, 11}}) {
    const Tensor x = random_tensor({3, s.length, s.dim}, 1);
    for (const Tensor& mask : {Tensor(), first_ones(s.length)}) {
      SCOPED_TRACE(testing::Message() << s.length << " " << s.dim << " " << s.tracks);
      const TensorFunction f = [&](const auto& in) { return rotate_tracks(in[0], s.tracks, mask); };
      const TensorFunction want = [&](const auto& in) { return rotated(in[0], s.tracks, mask); };
      expect_agrees(f, at::kDouble, want, {x}, {.value = 0, .gradient = 0});
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        EXPECT_TRUE(at::equal(f({x.to(type)}), want({x.to(type)})));
      }
      const TensorFunction back = [&](const auto& in) {
        return differentiate(f, {in[0]}, at::kDouble).gradients[0];
      };
      EXPECT_EQ(back({x}).sizes(), x.sizes());
    }
  }
}

TEST(RotateTracks, AgreesWithItsComposition) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("lra::rotate_tracks", "");
  const Tensor x = random_tensor({3, 9, 13}, 1, at::kFloat);
  for (const Tensor& mask : {Tensor(), first_ones(9)}) {
    for (const bool back : {false, true}) {
      const auto call = [&](c10::DispatchKey key) {
        torch::jit::Stack stack = {x, int64_t{5}, mask.defined() ? at::IValue(mask) : at::IValue(),
                                   back};
        op.callBoxedForDispatchKey(key, stack);
        return stack[0].toTensor();
      };
      EXPECT_TRUE(at::equal(call(c10::DispatchKey::CPU),
                            call(c10::DispatchKey::CompositeImplicitAutograd)));
    }
  }
}

TEST(RotateTracks, GivesTheSameBitsAtAnyNumberOfThreads) {
  const Tensor x = random_tensor({3, 901, 29}, 1, at::kFloat);
  expect_same_bits_at_any_number_of_threads(
      [&] { return std::vector<Tensor>{rotate_tracks(x, 6, first_ones(901))}; });
}

TEST(RotateTracks, RefusesTokensAfterPadding) {
  const Tensor mask = at::tensor({0, 1, 1}, at::kByte).unsqueeze(0);
  EXPECT_THROW(rotate_tracks(random_tensor({1, 3, 4}, 1), 2, mask), Error);
}

}  // namespace
}  // namespace lra::ops
