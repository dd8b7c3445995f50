#include "ops/scan/matrix_scan.h"

#include "ops/dispatch.h"
#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

struct Kind {
  bool decays_of_rows, delta;
  int64_t reversed_heads;
  bool scaled = false;
  int64_t key_heads = 2;
  bool reads = false;

  bool has_beta() const { return delta || scaled; }
};
constexpr Kind kKinds[] = {{false, false, 0},
                           {false, true, 1},
                           {true, false, 1},
                           {true, true, 1},
                           {false, false, 1, true},
                           {true, true, 1, false, 1},
                           {true, true, 1, false, 1, true},
                           {false, true, 0, false, 2, true}};

// The last heads turned around along L.
Tensor in_time(const Tensor& t, int64_t reversed_heads) {
  const int64_t rest = t.size(2) - reversed_heads;
  return at::cat({t.narrow(2, 0, rest), t.narrow(2, rest, reversed_heads).flip(1)}, 2);
}

// The states by the definition, one position after another; in is q, k, v, log decay, beta, reads.
Tensor states_one_by_one(const std::vector<Tensor>& inputs, const Kind& kind, const Tensor& mask) {
  std::vector<Tensor> in;
  for (const Tensor& t : inputs) {
    const Tensor of_heads = t.size(2) == 2 ? t : t.repeat_interleave(2, 2);
    in.push_back(in_time(of_heads, kind.reversed_heads));
  }
  const int64_t length = in[0].size(1);
  const Tensor valid = in_time((mask.defined() ? mask : at::ones({1, length}))
                                   .to(at::kDouble)
                                   .view({-1, length, 1, 1, 1})
                                   .expand({-1, length, in[0].size(2), 1, 1}),
                               kind.reversed_heads);
  Tensor state = at::zeros({1}, at::kDouble);
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < length; ++t) {
    const Tensor q = in[0].select(1, t).unsqueeze(3), k = in[1].select(1, t).unsqueeze(3);
    const Tensor decayed = in[3].select(1, t).unsqueeze(3).exp() * state;
    Tensor u = in[2].select(1, t).unsqueeze(2);
    const Tensor r = kind.reads ? in[5].select(1, t).unsqueeze(3) : k;
    if (kind.delta) u = u - (decayed * r).sum(2, true);
    if (kind.has_beta()) u = in[4].select(1, t).unsqueeze(2).unsqueeze(3) * u;
    state = (decayed + k * u) * valid.select(1, t);
    rows.push_back((state * q).sum(2));
  }
  return in_time(at::stack(rows, 1), kind.reversed_heads);
}

TensorFunction scan_of(const Kind& kind, const Tensor& mask) {
  return [=](const std::vector<Tensor>& in) {
    const Tensor beta = kind.has_beta() ? in[4] : Tensor();
    return matrix_scan({in[0], in[1], in[2], in[3], beta, kind.reversed_heads, mask,
                        /*delta=*/!kind.scaled, kind.reads ? in[5] : Tensor()});
  };
}

std::vector<Tensor> matrix_inputs(int64_t length, const Kind& kind) {
  const int64_t keys = 5, values = 3;
  std::vector<Tensor> in = {
      random_tensor({3, length, kind.key_heads, keys}, 1),
      random_tensor({3, length, kind.key_heads, keys}, 2), random_tensor({3, length, 2, values}, 3),
      -random_tensor({3, length, 2, kind.decays_of_rows ? keys : 1}, 4).abs()};
  if (kind.has_beta()) in.push_back(random_tensor({3, length, 2}, 5).abs());
  if (kind.reads) {  // near the keys, or the state would grow
    in.push_back(in[1] * (1 - 0.2 * random_tensor({3, length, kind.key_heads, keys}, 6).abs()));
  }
  return in;
}

TEST(MatrixScan, IsItsRecurrenceWithItsGradients) {
  for (const int64_t length : {1, 9, 70}) {
    for (const Kind& kind : kKinds) {
      for (const Tensor& mask : {Tensor(), first_ones(length)}) {
        SCOPED_TRACE(testing::Message()
                     << "L " << length << " decays " << kind.decays_of_rows << " delta "
                     << kind.delta << " scaled " << kind.scaled << " mask " << mask.defined());
        const auto in = matrix_inputs(length, kind);
        const auto f = scan_of(kind, mask);
        const TensorFunction oracle = [&](const auto& x) {
          return states_one_by_one(x, kind, mask);
        };
        expect_agrees(f, at::kFloat, oracle, in, {.value = 2e-6, .gradient = 1e-5});
        // Those that are rounded come first.
        const auto reads_third = [&](const TensorFunction& g) {
          return [g, reads = kind.reads](const std::vector<Tensor>& x) {
            return reads ? g({x[0], x[1], x[2], x[4], x[5], x[3]}) : g(x);
          };
        };
        std::vector<Tensor> rounded = in;
        if (kind.reads) rounded = {in[0], in[1], in[2], in[5], in[3], in[4]};
        expect_agrees_in_bf16(reads_third(f), reads_third(oracle), rounded, kind.reads ? 4 : 3,
                              {.value = 0x1p-8, .gradient = 0x1p-7});
        if (length < 70) expect_gradient_is_slope(f, in);
      }
    }
  }
}

// The composed version at lengths around its chunks, and without any position.
TEST(MatrixScan, IsItsComposedVersion) {
  for (const int64_t length : {0, 1, 16, 64, 70, 130}) {
    for (const Kind& kind : kKinds) {
      const auto in = matrix_inputs(length, kind);
      const Tensor mask = length == 70 ? first_ones(length) : Tensor();
      const auto input = [&](const auto& x) -> MatrixScanInput {
        return {x[0],
                x[1],
                x[2],
                x[3],
                kind.has_beta() ? x[4] : Tensor(),
                kind.reversed_heads,
                mask,
                !kind.scaled,
                kind.reads ? x[5] : Tensor()};
      };
      const TensorFunction composed = [&](const auto& x) { return composed_matrix_scan(input(x)); };
      if (length == 0) {
        EXPECT_EQ(composed(in).sizes(), scan_of(kind, mask)(in).sizes());
        continue;
      }
      expect_agrees(composed, at::kDouble, scan_of(kind, mask), in,
                    {.value = 1e-12, .gradient = 1e-11});
      const auto got = differentiate(composed, in, at::kDouble);
      const auto [of_q, of_k, of_v, of_log_decay, of_beta, of_reads] =
          composed_matrix_scan_backward(loss_weights(got.value), input(in));
      EXPECT_EQ(of_reads.numel(), kind.reads ? in[5].numel() : 0);
      EXPECT_TRUE(at::equal(of_q, got.gradients[0]));
      EXPECT_TRUE(at::equal(of_log_decay, got.gradients[3]));
      EXPECT_EQ(of_beta.numel(), kind.has_beta() ? in[4].numel() : 0);
    }
  }
}

TEST(MatrixScan, TakesNoHeads) {
  const Tensor none = at::zeros({2, 3, 0, 4});
  EXPECT_EQ(matrix_scan({none, none, none, at::zeros({2, 3, 0, 1})}).sizes(), none.sizes());
  EXPECT_THROW(matrix_scan({at::zeros({2, 3, 2, 4}), at::zeros({2, 3, 2, 4}),
                            at::zeros({2, 3, 3, 4}), at::zeros({2, 3, 3, 1})}),
               CheckFailure);
}

TEST(MatrixScan, RefusesOtherShapesAndTypes) {
  const auto in = matrix_inputs(8, {true, true, 1});
  const auto refuses = [&](size_t n, const Tensor& other) {
    auto changed = in;
    changed[n] = other;
    EXPECT_THROW(scan_of({true, true, 1}, {})(changed), CheckFailure) << n;
  };
  refuses(1, in[1].narrow(3, 0, 4));
  refuses(2, in[2].narrow(1, 0, 4));
  refuses(2, in[2].to(at::kFloat));
  refuses(3, in[3].narrow(3, 0, 2));
  refuses(3, in[3].to(at::kFloat));
  refuses(4, in[4].unsqueeze(3));
  EXPECT_THROW(matrix_scan({in[0], in[1], in[2], in[3], in[4], 0, {}, true, in[0].narrow(3, 0, 4)}),
               CheckFailure);
  EXPECT_THROW(matrix_scan({in[0], in[1], in[2], in[3], in[4], 0, {}, false, in[0]}), CheckFailure);
  EXPECT_THROW(scan_of({true, true, 1}, at::ones({3, 7}, at::kByte))(in), CheckFailure);
}

TEST(MatrixScan, GivesTheSameBitsAtAnyNumberOfThreads) {
  expect_same_bits_at_any_number_of_threads([] {
    const auto d = differentiate(scan_of({true, true, 1}, {}), matrix_inputs(150, {true, true, 1}),
                                 at::kFloat);
    std::vector<Tensor> all = d.gradients;
    all.push_back(d.value);
    return all;
  });
}

}  // namespace
}  // namespace lra::ops
