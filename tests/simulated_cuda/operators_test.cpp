// Operators on a GPU, or with simulated kernels, against those of the CPU.
#include <gtest/gtest.h>

#include <array>

#include "kernels/attention/attention_test_case.h"
#include "kernels/attention/attention_test_settings.h"
#include "kernels/cuda/kernels.h"
#include "ops/adam.h"
#include "ops/attention/attention.h"
#include "ops/attention/feature_attention.h"
#include "ops/dispatch.h"
#include "ops/embedding.h"
#include "ops/libtorch.h"
#include "ops/linear.h"
#include "ops/pointwise/batch_norm.h"
#include "ops/pointwise/layer_norm.h"
#include "ops/pointwise/pointwise.h"
#include "ops/pointwise/row_norm.h"
#include "ops/precision.h"
#include "ops/rotate_tracks.h"
#include "ops/sinkhorn.h"
#include "ops/sorted_runs.h"
#include "ops/test_tensors.h"
#include "tested_device.h"

namespace lra::ops {
namespace {

using at::Tensor;
using kernels::AttentionCase;
using kernels::CaseSettings;

// An attention problem as tensors of the CPU.
struct Arguments {
  explicit Arguments(AttentionCase<float>& c) : case_(c) {
    const auto& s = c.shape;
    const auto rows = [&](std::vector<float>& x, int64_t length) {
      const bool by_head = c.settings.layout == kernels::Layout::kBHLE;
      const int64_t width = static_cast<int64_t>(x.size()) / (s.batch * s.heads * length);
      const auto shape = by_head ? std::vector{s.batch, s.heads, length, width}
                                 : std::vector{s.batch, length, s.heads, width};
      const Tensor t = at::from_blob(x.data(), shape, at::kFloat);
      return by_head ? t.transpose(1, 2) : t;
    };
    q = rows(c.q, s.query_length);
    k = rows(c.k, s.key_length);
    v = rows(c.v, s.key_length);
    grad = rows(c.grad_out, s.query_length);
    const auto mask_of = [&](std::vector<uint8_t>& x, int64_t length) {
      return x.empty() ? Tensor() : at::from_blob(x.data(), {s.batch, length}, at::kByte);
    };
    mask = {mask_of(c.key_mask, s.key_length), mask_of(c.query_mask, s.query_length)};
    pattern.left = c.settings.left;
    pattern.right = c.settings.right;
    if (c.settings.query_block > 0) {
      pattern.offsets = at::tensor(c.offsets, at::kLong);
      pattern.key_blocks = at::tensor(c.key_blocks, at::kInt);
      pattern.query_block = c.settings.query_block;
      pattern.key_block = c.settings.key_block;
    }
    if (c.settings.rounds > 0) {
      pattern.runs =
          at::from_blob(c.rounds.back().data(),
                        {s.batch * s.heads, 3 * c.settings.rounds, s.query_length}, at::kInt);
    }
    if (c.settings.laplace) weights = kernels::AttentionWeights::kLaplace;
    if (c.settings.relative) {
      bias = at::from_blob(c.bias.data(), {s.heads, c.distances()}, at::kFloat);
    } else if (c.settings.bias) {
      bias = at::from_blob(c.bias.data(), {s.heads, s.query_length, s.key_length},
                           {s.query_length * c.bias_row(), c.bias_row(), 1}, at::kFloat);
    }
  }

  // Output and gradients, on the CPU.
  std::vector<Tensor> results(at::Device device, at::ScalarType type) const {
    const auto leaf = [&](const Tensor& t) { return t.detach().to(device, type).requires_grad_(); };
    const auto moved = [&](const Tensor& t) { return t.defined() ? t.to(device) : t; };
    const Tensor in[] = {leaf(q), leaf(k), leaf(v)};
    const Tensor table = bias.defined() ? bias.detach().to(device).requires_grad_() : bias;
    AttentionPattern here = pattern;
    here.runs = moved(here.runs);
    const Tensor out = attention(in[0], in[1], in[2], here, {moved(mask.keys), moved(mask.queries)},
                                 {case_.settings.dropout_rate, 5}, 0, table, weights);
    (out * grad.to(device, type)).sum().backward();
    std::vector<Tensor> all = {out.detach(), in[0].grad(), in[1].grad(), in[2].grad()};
    if (table.defined()) all.push_back(table.grad());
    for (Tensor& t : all) t = t.to(at::kCPU, at::kFloat);
    return all;
  }

  AttentionCase<float>& case_;
  Tensor q, k, v, grad, bias;
  AttentionPattern pattern;
  AttentionMask mask;
  kernels::AttentionWeights weights = kernels::AttentionWeights::kSoftmax;
};

double largest_difference(const Tensor& got, const Tensor& want) {
  const double size = std::max(1.0, want.abs().max().item<double>());
  return (got - want).abs().max().item<double>() / size;
}

void expect_attention_of_the_cpu(at::ScalarType type, double bound) {
  int64_t number = 0;
  for (CaseSettings settings : kernels::all_cases()) {
    // The kernels themselves are tested on all cases elsewhere.
    if (settings.shape.head_dim > kernels::cuda::kMaxHeadDim) continue;
    if (is_simulated() && ++number % 9 != 0) continue;
    settings.bf16_values = true;
    SCOPED_TRACE(settings.describe());
    AttentionCase<float> c(settings);
    const Arguments arguments(c);
    const auto want = arguments.results(at::kCPU, at::kFloat);
    const auto got = arguments.results(*tested_device(), type);
    ASSERT_EQ(got.size(), want.size());
    for (size_t n = 0; n < got.size(); ++n) {
      EXPECT_LE(largest_difference(got[n], want[n]), n == 0 ? bound : 2 * bound) << n;
    }
  }
}

TEST(GpuOperators, AttentionInFloatIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  expect_attention_of_the_cpu(at::kFloat, 1e-4);
}

TEST(GpuOperators, AttentionInBfloat16IsNearThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  expect_attention_of_the_cpu(at::kBFloat16, 0x1p-6);
}

// The kernels take values some columns at a time; the last are fewer.
TEST(GpuOperators, AttentionTakesValuesOfAnyWidth) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const bool laplace : {false, true}) {
      CaseSettings settings = kernels::settings_of(2, 2, 70, 70, 16);
      settings.shape.value_dim = 150;
      settings.bias = settings.relative = settings.key_mask = true;
      settings.laplace = laplace;
      settings.bf16_values = true;
      AttentionCase<float> c(settings);
      const Arguments arguments(c);
      const auto want = arguments.results(at::kCPU, at::kFloat);
      const auto got = arguments.results(*tested_device(), type);
      for (size_t n = 0; n < got.size(); ++n) {
        EXPECT_LE(largest_difference(got[n], want[n]), type == at::kFloat ? 1e-4 : 0x1p-5) << n;
      }
    }
  }
}

// The library's switch for its flash attention, as it was when this goes out of scope.
class FlashAttention {
 public:
  explicit FlashAttention(bool on) { at::globalContext().setSDPUseFlash(on); }
  ~FlashAttention() { at::globalContext().setSDPUseFlash(before_); }

 private:
  bool before_ = at::globalContext().userEnabledFlashSDP();
};

TEST(GpuOperators, DenseAttentionOfTheLibraryIsNearOurs) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto& shape :
       {kernels::settings_of(2, 3, 70, 70, 32), kernels::settings_of(1, 2, 5, 130, 64)}) {
    AttentionCase<float> c(shape);
    const Arguments arguments(c);
    const auto results = [&](bool library) {
      const FlashAttention flash(library);
      return arguments.results(*tested_device(), at::kBFloat16);
    };
    const auto ours = results(false), librarys = results(true);
    for (size_t n = 0; n < ours.size(); ++n) {
      EXPECT_LE(largest_difference(librarys[n], ours[n]), 0x1p-6) << n;
    }
    // Two ways of adding up: equal bits would mean that one was not taken.
    EXPECT_FALSE(at::equal(librarys[0], ours[0]));
  }
}

TEST(GpuOperators, DenseAttentionGivesTheSameBitsWhenThatIsAskedFor) {
  LRA_SKIP_WITHOUT_DEVICE();
  const int64_t length = is_simulated() ? 70 : 2048;
  AttentionCase<float> c(kernels::settings_of(1, 2, length, length, 64));
  const Arguments arguments(c);
  // The program sets the same mode.
  const bool before = at::globalContext().deterministicAlgorithms();
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  const auto first = arguments.results(*tested_device(), at::kBFloat16);
  for (int n = 0; n < 5; ++n) {
    const auto again = arguments.results(*tested_device(), at::kBFloat16);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(again[i], first[i])) << i;
  }
  at::globalContext().setDeterministicAlgorithms(before, /*warn_only=*/false);
}

// Some rows see no key of one part, or of both.
TEST(GpuOperators, AttentionIsMergedAsOnTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  const auto merge = find_op<void(Tensor&, Tensor&, const Tensor&, const Tensor&, double)>(
      "lra::merge_attention_");
  for (const int64_t width : {1, 7, 70}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const auto run = [&](at::Device device) {
        variable_list all;
        for (const uint64_t seed : {1, 2}) {
          const auto unseen = at::arange(9).remainder(seed + 1).eq(0);
          const Tensor largest =
                           (3 * random_tensor({2, 3, 9}, seed)).masked_fill(unseen, -INFINITY),
                       sum = (2 + random_tensor({2, 3, 9}, seed + 2)).masked_fill(unseen, 0);
          const Tensor out =
              random_tensor({2, 9, 3, width}, seed + 4).masked_fill(unseen.view({9, 1, 1}), 0);
          all.push_back(out.to(device, type));
          all.push_back(at::stack({largest, sum}).to(device, at::kFloat));
        }
        merge.call(all[0], all[1], all[2], all[3], 0.5);
        return std::pair(all[0].to(at::kCPU, at::kFloat), all[1].cpu());
      };
      const auto want = run(at::kCPU), got = run(*tested_device());
      EXPECT_LE(largest_difference(got.first, want.first), type == at::kFloat ? 1e-6 : 0x1p-6);
      EXPECT_TRUE(at::allclose(got.second, want.second, 1e-6, 1e-6));
    }
  }
}

TEST(GpuOperators, SortedRunsAreThoseOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const RunRules& rules :
       {RunRules{}, RunRules{.chunk = 5}, RunRules{.chunk = 4, .causal = true},
        RunRules{.causal = true, .lone_rows_see_themselves = true},
        RunRules{.chunk = 3, .lone_rows_see_themselves = true}}) {
    for (const int64_t length : {1, 2, 19, 60}) {
      const Tensor buckets =
          at::floor((random_tensor({3, 2, 2, length}, 3) + 1) * 4).to(at::kInt).contiguous();
      const auto want = sorted_runs(buckets, 7, rules);
      const auto got = sorted_runs(buckets.to(*tested_device()), 7, rules);
      ASSERT_EQ(got.size(), want.size());
      for (size_t r = 0; r < got.size(); ++r) {
        EXPECT_TRUE(at::equal(got[r].cpu(), want[r])) << "round " << r << ", length " << length;
      }
    }
  }
}

void expect_feature_attention(at::IntArrayRef shape_BL3HE, at::ScalarType type,
                              kernels::FeatureMap map, bool padded) {
  SCOPED_TRACE(testing::Message() << shape_BL3HE << " " << type << " " << padded);
  const int64_t length = shape_BL3HE[1];
  Tensor mask = at::ones({shape_BL3HE[0], length}, at::kByte);
  mask[0].narrow(0, length * 2 / 5, length - length * 2 / 5).fill_(0);
  mask[1].fill_(0);
  const FeatureAttentionOptions options{.map = map, .offset = 1e-3, .eps = 1e-6};
  const Tensor values = random_tensor(shape_BL3HE, 1, at::kFloat).to(type);
  const Tensor weights =
      random_tensor({shape_BL3HE[0], length, shape_BL3HE[3], shape_BL3HE[4]}, 2, at::kFloat);
  const auto run = [&](at::Device device) {
    const Tensor qkv = values.detach().to(device).requires_grad_();
    const Tensor out = packed_feature_attention(qkv, padded ? mask.to(device) : Tensor(), options);
    (out * weights.to(device, type)).sum().backward();
    return std::pair(out.detach().to(at::kCPU, at::kFloat), qkv.grad().to(at::kCPU, at::kFloat));
  };
  const auto want = run(at::kCPU), got = run(*tested_device());
  const double bound = type == at::kFloat ? 1e-4 : 0x1p-5;
  EXPECT_LE(largest_difference(got.first, want.first), bound);
  EXPECT_LE(largest_difference(got.second, want.second), bound);
}

TEST(GpuOperators, FeatureAttentionIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto map : {kernels::FeatureMap::kElu, kernels::FeatureMap::kRelu}) {
    for (const bool padded : {false, true}) {
      expect_feature_attention({2, 30, 3, 2, 5}, at::kFloat, map, padded);
      if (is_simulated()) continue;
      for (const int64_t width : {16, 32, 64, 72, 128}) {
        for (const auto type : {at::kFloat, at::kBFloat16}) {
          expect_feature_attention({2, 1100, 3, 4, width}, type, map, padded);
        }
      }
    }
  }
}

// All of an array, and without its first element: then nothing is aligned.
TEST(GpuOperators, PointwiseIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  const int64_t count = is_simulated() ? 3000 : 3000000;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor x = random_tensor({count}, 1, at::kFloat).mul(3).to(type);
    const Tensor y = random_tensor({count}, 2, at::kFloat).to(type);
    for (const int64_t first : {0, 1}) {
      const auto run = [&](at::Device device) {
        const auto part = [&](const Tensor& t) {
          return t.detach().to(device).narrow(0, first, count - first);
        };
        const auto grads = gelu_dropout_backward(part(x), part(y), 0.1, 9, 2);
        return std::vector<Tensor>{gelu_dropout(part(x), 0.1, 9, 2), grads.x, grads.y,
                                   ops::dropout(part(x), 0.3, 5, 3),
                                   dropout_add(part(x), part(y), 0.3, 5, 3)};
      };
      const auto want = run(at::kCPU), got = run(*tested_device());
      for (size_t n = 0; n < want.size(); ++n) {
        const Tensor here = got[n].to(at::kCPU, at::kFloat), there = want[n].to(at::kFloat);
        EXPECT_TRUE(at::allclose(here, there, type == at::kFloat ? 1e-5 : 0x1p-7, 4e-6)) << n;
      }
    }
  }
}

// The gradient that the second product is added to is a view, that of the first is its own.
TEST(GpuOperators, LinearOfAStreamIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto run = [&](at::Device device) {
      const auto leaf = [&](at::IntArrayRef size, uint64_t seed, at::ScalarType as) {
        return random_tensor(size, seed, at::kFloat).to(as).to(device).requires_grad_();
      };
      const Tensor x = leaf({3, 20, 8}, 1, type), weight = leaf({6, 8}, 2, at::kFloat),
                   bias = leaf({6}, 3, at::kFloat);
      Tensor stream = x;
      const Tensor first = linear_of_stream(stream, weight, bias),
                   second = linear_of_stream(stream, weight);
      const Tensor y = at::cat({first, second, stream}, 2);
      y.backward(leaf(y.sizes(), 4, type).detach());
      std::vector<Tensor> all = {y.detach(), x.grad(), weight.grad(), bias.grad()};
      for (Tensor& t : all) t = t.to(at::kCPU, at::kFloat);
      return all;
    };
    const auto want = run(at::kCPU), got = run(*tested_device());
    for (size_t n = 0; n < want.size(); ++n) {
      EXPECT_LE(relative_error(got[n], want[n]), type == at::kFloat ? 1e-5 : 0x1p-6) << n;
    }
  }
}

TEST(GpuOperators, LayerNormIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  std::vector<std::vector<int64_t>> shapes = {{5, 7}, {130, 64}};
  if (!is_simulated()) shapes.insert(shapes.end(), {{5000, 512}, {40, 65536}, {9, 130}});
  for (const auto& shape : shapes) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      SCOPED_TRACE(testing::Message() << shape << " " << type);
      const auto leaf = [&](at::IntArrayRef size, uint64_t seed, at::ScalarType as, at::Device to) {
        return random_tensor(size, seed, at::kFloat).to(as).to(to).requires_grad_();
      };
      const auto run = [&](at::Device device) {
        const Tensor x = leaf(shape, 1, type, device),
                     weight = leaf({shape[1]}, 2, at::kFloat, device),
                     bias = leaf({shape[1]}, 3, at::kFloat, device);
        const auto [y, stream] = layer_norm_of_stream(x, weight, bias, 1e-6);
        (y + stream * 2).backward(leaf(shape, 4, type, device).detach());
        std::vector<Tensor> all = {y.detach(), x.grad(), weight.grad(), bias.grad()};
        for (Tensor& t : all) t = t.to(at::kCPU, at::kFloat);
        return all;
      };
      const auto want = run(at::kCPU), got = run(*tested_device());
      for (size_t n = 0; n < want.size(); ++n) {
        const bool rounded = n < 2 && type == at::kBFloat16;
        EXPECT_LE(largest_difference(got[n], want[n]), rounded ? 0x1p-7 : 1e-5) << n;
      }
    }
  }
}

// Groups whose sums fit into shared memory (768 numbers) and such that do not, in vectors or not.
TEST(GpuOperators, RowNormIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto& [rows, groups, width] :
       {std::array<int64_t, 3>{5, 1, 7}, {43, 3, 5}, {130, 4, 32}, {20, 8, 100}, {9, 7, 111}}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const bool centered : {false, true}) {
        SCOPED_TRACE(testing::Message() << groups << " x " << width << " " << type << centered);
        const auto run = [&](at::Device device) {
          const auto leaf = [&](at::IntArrayRef size, uint64_t seed, at::ScalarType as) {
            return random_tensor(size, seed, at::kFloat).to(as).to(device).requires_grad_();
          };
          const Tensor x = leaf({rows, groups, width}, 1, type),
                       weight = leaf({groups, width}, 2, at::kFloat);
          Tensor y = row_norm(x, weight, 1e-6, centered), sum = y;
          if (groups == 1 && !centered) {
            const auto both = row_norm_of_stream(x, weight[0], 1e-6);
            y = both.first;
            sum = y + both.second * 2;
          }
          sum.backward(leaf({rows, groups, width}, 3, type).detach());
          std::vector<Tensor> all = {y.detach(), x.grad(), weight.grad()};
          for (Tensor& t : all) t = t.to(at::kCPU, at::kFloat);
          return all;
        };
        const auto want = run(at::kCPU), got = run(*tested_device());
        for (size_t n = 0; n < want.size(); ++n) {
          const bool rounded = n < 2 && type == at::kBFloat16;
          EXPECT_LE(relative_error(got[n], want[n]), rounded ? 0x1p-7 : 1e-5) << n;
        }
      }
    }
  }
}

TEST(GpuOperators, UnitRowsAreThoseOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto run = [&](at::Device device) {
      const Tensor both =
          random_tensor({5, 2, 3, 8}, 1, at::kFloat).to(type).to(device).requires_grad_();
      const Tensor y = unit_rows(both.select(1, 0));
      y.backward(random_tensor(y.sizes(), 2).to(type).to(device));
      return std::pair(y.detach().to(at::kCPU, at::kFloat), both.grad().to(at::kCPU, at::kFloat));
    };
    const auto want = run(at::kCPU), got = run(*tested_device());
    const double bound = type == at::kFloat ? 1e-5 : 0x1p-6;
    EXPECT_LE(relative_error(got.first, want.first), bound);
    EXPECT_LE(relative_error(got.second, want.second), bound);
  }
}

// Tracks of different widths and without a channel, offsets beyond the length, and an example
// without a token.
TEST(GpuOperators, TracksRotateAsOnTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto& [length, channels, tracks] :
       {std::array<int64_t, 3>{1, 3, 2}, {70, 13, 5}, {33, 150, 9}, {9, 4, 6}}) {
    for (const Tensor& mask : {Tensor(), first_ones(length)}) {
      for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
        SCOPED_TRACE(testing::Message() << length << " x " << channels << " " << type);
        const auto run = [&](at::Device device) {
          const Tensor x =
              random_tensor({3, length, channels}, 1).to(device, type).requires_grad_();
          const Tensor y = rotate_tracks(x, tracks, mask.defined() ? mask.to(device) : mask);
          y.backward(random_tensor(y.sizes(), 2).to(device, type));
          return std::pair(y.detach().cpu(), x.grad().cpu());
        };
        const auto want = run(at::kCPU), got = run(*tested_device());
        EXPECT_TRUE(at::equal(got.first, want.first));
        EXPECT_TRUE(at::equal(got.second, want.second));
      }
    }
  }
}

// Sizes around the 32 columns of a block, its 8 lanes, the 128 rows of a slice and the 16 slices
// that are summed at a time; a third of the rows is padding and holds NaN, or all of it.
TEST(GpuOperators, BatchNormIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{5, 1}, {7, 33}, {300, 5}, {2200, 64}}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const int64_t valid : {int64_t{-1}, int64_t{0}, 2 * rows / 3}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << columns << " " << type << valid);
        const Tensor mask = valid < 0 ? Tensor() : at::arange(rows).lt(valid).to(at::kByte);
        Tensor values = (random_tensor({rows, columns}, 1) + 3).to(at::kFloat);
        if (mask.defined()) values.masked_fill_(mask.eq(0).unsqueeze(1), std::nan(""));
        const auto run = [&](at::Device device) {
          const auto parameter = [&](uint64_t seed) {
            return random_tensor({columns}, seed).to(device, at::kFloat).requires_grad_();
          };
          const Tensor x = values.clone().to(device, type).requires_grad_();
          const Tensor weight = parameter(2), bias = parameter(3);
          const auto norm =
              batch_norm(x, mask.defined() ? mask.to(device) : mask, weight, bias, 1e-5);
          const Tensor sum = norm.y + norm.stream * 2;
          sum.backward(random_tensor({rows, columns}, 4).to(type).to(device));
          std::vector<Tensor> all = {norm.y.detach(), x.grad(),  weight.grad(), bias.grad(),
                                     norm.count,      norm.mean, norm.variance};
          for (Tensor& t : all) t = t.to(at::kCPU, at::kFloat);
          return all;
        };
        const auto want = run(at::kCPU), got = run(*tested_device()), again = run(*tested_device());
        for (size_t n = 0; n < want.size(); ++n) {
          const bool rounded = n < 2 && type == at::kBFloat16;
          EXPECT_LE(relative_error(got[n], want[n]), rounded ? 0x1p-7 : 2e-5) << n;
          EXPECT_TRUE(at::equal(again[n], got[n])) << n;
        }
      }
    }
  }
}

TEST(GpuOperators, GumbelNoiseIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t blocks : {1, 6, 82}) {
    const Tensor logits = at::zeros({2, 3, blocks, blocks});
    const Tensor want = gumbel_noise_like(logits, 7);
    const Tensor got = gumbel_noise_like(logits.to(*tested_device()), 7).cpu();
    EXPECT_LE((got - want).abs().max().item<double>(), 1e-5);
    EXPECT_GT(want.abs().max().item<double>(), 0);
  }
}

// Sizes around the 32 columns and 8 rows that a block takes at a time; an example without an item.
TEST(GpuOperators, SinkhornIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const int64_t size : {1, 7, 33, 70}) {
    const Tensor even = at::arange(size).remainder(2).eq(0);
    for (const Tensor& valid : {Tensor(), at::stack({even, even.logical_and(~even)})}) {
      for (const int64_t iterations : {1, 4}) {
        SCOPED_TRACE(testing::Message() << size << " " << valid.defined() << " " << iterations);
        const auto run = [&](at::Device device) {
          const Tensor logits =
              (5 * random_tensor({2, 3, size, size}, 1)).to(device, at::kFloat).requires_grad_();
          const Tensor y = sinkhorn(logits, valid.defined() ? valid.to(device) : valid, iterations);
          y.backward(random_tensor(y.sizes(), 2).to(device, at::kFloat));
          return std::pair(y.detach().cpu(), logits.grad().cpu());
        };
        const auto want = run(at::kCPU), got = run(*tested_device());
        EXPECT_LE(largest_difference(got.first, want.first), 1e-5);
        EXPECT_LE(largest_difference(got.second, want.second), 1e-5);
      }
    }
  }
}

// Parameters come from the roundings made at once, unless they begin at a place that products are
// slow for.
TEST(GpuOperators, TakesParametersThatWereRoundedAtOnce) {
  LRA_SKIP_WITHOUT_DEVICE();
  const Tensor flat = random_tensor({200}, 1).to(*tested_device(), at::kFloat);
  const Tensor x = random_tensor({7, 12}, 2).to(*tested_device(), at::kBFloat16);
  for (const int64_t first : {0, 8, 3}) {
    const Tensor weight = flat.narrow(0, first, 60).view({5, 12}).detach().requires_grad_();
    const Tensor bias = flat.narrow(0, 104, 5).detach();
    const Tensor want = linear(x, weight, bias);
    const RoundedParameters rounded(flat, at::kBFloat16);
    const Tensor before = flat.clone();
    flat.zero_();
    const Tensor got = linear(x, weight, bias);
    flat.copy_(before);
    EXPECT_EQ(at::equal(got, want), first != 3) << first;
    EXPECT_TRUE(at::equal(beside(weight, x), weight.to(at::kBFloat16)));
  }
}

TEST(GpuOperators, SumByTokenIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor tokens = at::arange(5000, at::kInt).mul(7).remainder(257).to(at::kInt);
    const Tensor grad = random_tensor({5000, 12}, 1, at::kFloat).to(type);
    const Tensor got = sum_by_token(grad.to(*tested_device()), tokens.to(*tested_device()), 258);
    EXPECT_LE(largest_difference(got.cpu(), sum_by_token(grad, tokens, 258)), 1e-5);
  }
}

TEST(GpuOperators, RefusesTensorsOfTheCpuBesideItsOwn) {
  LRA_SKIP_WITHOUT_DEVICE();
  const Tensor host = at::zeros({4, 8}), there = host.to(*tested_device());
  EXPECT_THROW(dropout_add(there, host, 0.1, 1), CheckFailure);
  EXPECT_THROW(layer_norm(there, at::ones({8}), at::zeros({8}), 1e-6), CheckFailure);
  EXPECT_THROW(sum_by_token(there, at::zeros({4}, at::kInt), 3), CheckFailure);
}

TEST(GpuOperators, RefusesDoubleWithOneLine) {
  LRA_SKIP_WITHOUT_DEVICE();
  const Tensor x = at::zeros({3}, at::TensorOptions(at::kDouble).device(*tested_device()));
  EXPECT_THROW(gradient_norm(x), CheckFailure);
}

TEST(GpuOperators, GradientNormIsThatOfTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  const Tensor x = random_tensor({20000}, 4, at::kFloat);
  EXPECT_NEAR(gradient_norm(x.to(*tested_device())), gradient_norm(x), 1e-9 * gradient_norm(x));
}

}  // namespace
}  // namespace lra::ops
