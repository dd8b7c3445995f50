// The dense oracle of Sparse Transformer attention, and what is particular to the mixer.
#include "base/rng.h"
#include "mixers/test_oracles.h"

namespace lra::mixers {
namespace {

at::Tensor sparse_transformer_oracle(const OracleInput& in);

const ConformanceRow kSparseTransformerRow{
    "sparse_transformer", sparse_transformer_oracle,
    "pattern = 'fixed'\nstride = 8\nsummary = 3\ncausal = false\nglobal_first = false", 8};

using at::Tensor;

constexpr uint64_t kSparseKey = 0xC0FFEE;

struct Pattern {
  bool strided, causal, global_first;
  int64_t stride, summary;
};

Pattern pattern_of(const OracleInput& in) {
  const auto flag = [&](const char* name) { return std::get<bool>(in.config.find(name)->value); };
  return {std::get<std::string>(in.config.find("pattern")->value) == "strided", flag("causal"),
          flag("global_first"), setting(in, "stride"), setting(in, "summary")};
}

// True if i sees j, in the words of the paper except for the direction.
bool sees(const Pattern& p, int64_t i, int64_t j) {
  if (p.causal && j > i) return false;
  if (!p.strided) return i / p.stride == j / p.stride || j % p.stride >= p.stride - p.summary;
  return std::abs(i - j) <= p.stride || (i - j) % p.stride == 0;
}

// Position of a pair's dropout decision: the call of attention, and i and j within it.
struct Place {
  uint32_t part;
  int64_t i, j;
};

// `ranks`: of each valid token when they are sorted by residue, then position.
Place place_of(const Pattern& p, const std::vector<int64_t>& ranks, int64_t i, int64_t j) {
  if (!p.strided) {
    if (i / p.stride == j / p.stride) return {0, i, j};
    return {1, i, j / p.stride * p.summary + j % p.stride - (p.stride - p.summary)};
  }
  if (std::abs(i - j) < p.stride) return {0, i, j};
  return {1, ranks[static_cast<size_t>(i)], ranks[static_cast<size_t>(j)]};
}

std::vector<int64_t> ranks_of(const Pattern& p, const Tensor& valid_L) {
  const int64_t length = valid_L.size(0);
  std::vector<int64_t> residues;
  for (int64_t i = 0; i < length; ++i) {
    residues.push_back(valid_L[i].item<bool>() ? i % p.stride : p.stride);
  }
  const auto residue = [&](int64_t i) { return residues[static_cast<size_t>(i)]; };
  std::vector<int64_t> ranks(static_cast<size_t>(length), 0);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) {
      ranks[static_cast<size_t>(i)] +=
          residue(j) < residue(i) || (residue(j) == residue(i) && j < i);
    }
  }
  return ranks;
}

double factor(const ops::AttentionDropout& dropout, int64_t plane, const Place& place) {
  const uint64_t key = derive_key(dropout.key, RandomUse::kDropout, place.part);
  const uint32_t value =
      dropout_value(key, static_cast<uint32_t>(plane), static_cast<uint32_t>(place.i),
                    static_cast<uint32_t>(place.j));
  return value < dropout_threshold(dropout.rate) ? 0.0 : double{dropout_scale(dropout.rate)};
}

// Fills allowed and factors [L, L] of one plane.
void fill_plane(const OracleInput& in, int64_t batch, int64_t head, const Tensor& allowed_LL,
                const Tensor& factors_LL) {
  const Pattern p = pattern_of(in);
  const int64_t shift = p.global_first ? 1 : 0, length = allowed_LL.size(0);
  bool* allowed = allowed_LL.mutable_data_ptr<bool>();
  double* factors = factors_LL.mutable_data_ptr<double>();
  const auto ranks = ranks_of(p, in.valid_BL[batch].narrow(0, shift, length - shift));
  const int64_t plane = batch * in.shape.attention.heads + head;
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) {
      if (p.global_first && (i == 0 || j == 0)) {
        allowed[i * length + j] = true;
        const Place from_first = j == 0 ? Place{4, 0, 0} : Place{3, 0, j - 1};
        factors[i * length + j] =
            factor(in.dropout, plane, i == 0 ? from_first : Place{2, i - 1, 0});
      } else if (sees(p, i - shift, j - shift)) {
        allowed[i * length + j] = true;
        factors[i * length + j] =
            factor(in.dropout, plane, place_of(p, ranks, i - shift, j - shift));
      }
    }
  }
}

std::string settings(const std::string& pattern, int64_t stride, int64_t summary, bool causal,
                     bool global_first) {
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  return "pattern = '" + pattern + "'\nstride = " + std::to_string(stride) +
         "\nsummary = " + std::to_string(summary) + "\ncausal = " + flag(causal) +
         "\nglobal_first = " + flag(global_first);
}

Conformance conformance_of(const std::string& config) {
  return {"sparse_transformer", sparse_transformer_oracle, config.c_str(), 0};
}

TestedMixer tested_sparse(const Conformance& conformance, int64_t length) {
  return {kSparseTransformer,
          conformance,
          {.model_dim = 6, .attention = {.heads = 2, .head_dim = 5}, .max_length = length}};
}

Tensor sparse_input(int64_t length) {
  return 2 * ops::random_tensor({3, length, 6}, static_cast<uint64_t>(length));
}

void expect_definition(const std::string& config) {
  const Conformance conformance = conformance_of(config);
  for (const int64_t length : {1, 2, 5, 6, 7, 13, 40}) {
    const TestedMixer mixer = tested_sparse(conformance, length);
    for (const Tensor& mask : {Tensor(), ragged_mask(length)}) {
      SCOPED_TRACE(testing::Message() << config << "\nL " << length << " " << mask.defined());
      const layers::Context context{mask, 0.3, kSparseKey};
      ops::expect_agrees(mixer.function(context, at::kFloat), at::kFloat, mixer.oracle(context),
                         mixer.inputs(sparse_input(length)), {.value = 1e-5, .gradient = 1e-4});
    }
  }
}

TEST(SparseTransformer, AgreesWithItsDefinitionUnderEveryOption) {
  for (const char* pattern : {"fixed", "strided"}) {
    for (const bool causal : {false, true}) {
      for (const bool global_first : {false, true}) {
        expect_definition(settings(pattern, 6, 2, causal, global_first));
      }
    }
  }
}

TEST(SparseTransformer, AgreesWithItsDefinitionAtExtremeSettings) {
  expect_definition(settings("fixed", 1, 1, false, false));
  expect_definition(settings("fixed", 6, 6, true, false));
  expect_definition(settings("strided", 1, 1, false, false));
  expect_definition(settings("strided", 5, 1, true, true));
}

TEST(SparseTransformer, GradientOfTheStridedPatternIsTheSlope) {
  const std::string config = settings("strided", 4, 1, false, true);
  const Conformance conformance = conformance_of(config);
  const TestedMixer mixer = tested_sparse(conformance, 17);
  ops::expect_gradient_is_slope(mixer.function({ragged_mask(17), 0.2, kSparseKey}, at::kDouble),
                                mixer.inputs(sparse_input(17)));
}

// The mixer with one setting is the mixer with another.
void expect_same(const std::string& left, const std::string& right, int64_t max_length) {
  const Conformance a = conformance_of(left), b = conformance_of(right);
  const Tensor x = sparse_input(30).to(at::kFloat);
  EXPECT_TRUE(at::equal(tested_sparse(a, max_length).make(at::kFloat)->forward(x, {}),
                        tested_sparse(b, max_length).make(at::kFloat)->forward(x, {})))
      << left << "\n"
      << right;
}

TEST(SparseTransformer, TakesTheStrideFromTheMaximumLength) {
  expect_same(settings("fixed", 0, 3, false, false), settings("fixed", 6, 3, false, false), 38);
  expect_same(settings("strided", 0, 3, false, false), settings("strided", 7, 3, false, false), 43);
  // The stride follows the number of tokens behind the first.
  expect_same(settings("fixed", 0, 3, false, true), settings("fixed", 6, 3, false, true), 43);
}

TEST(SparseTransformer, RefusesASummaryLongerThanTheStride) {
  const Conformance conformance = conformance_of(settings("fixed", 5, 6, true, false));
  EXPECT_THROW(tested_sparse(conformance, 8).make(at::kFloat), Error);
}

TEST(SparseTransformer, RefusesAnUnknownPattern) {
  const std::string config = "pattern = 'fixd'";
  const Conformance conformance = conformance_of(config);
  EXPECT_THROW(tested_sparse(conformance, 8).make(at::kFloat), Error);
}

at::Tensor sparse_transformer_oracle(const OracleInput& in) {
  const int64_t batch = in.x_BLD.size(0), length = in.x_BLD.size(1),
                heads = in.shape.attention.heads;
  Tensor allowed = at::zeros({batch, heads, length, length}, at::kBool);
  Tensor factors = at::ones({batch, heads, length, length}, at::kDouble);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) fill_plane(in, b, h, allowed[b][h], factors[b][h]);
  }
  allowed = ops::masks_allow(allowed, {.keys = in.valid_BL, .queries = in.valid_BL});
  const Tensor q = heads_of(in, "qkv.weight", 0), k = heads_of(in, "qkv.weight", 1);
  const Tensor scores =
      at::einsum("blhe,bshe->bhls", {q, k}) / std::sqrt(static_cast<double>(q.size(3)));
  const Tensor weights = scores.masked_fill(~allowed, -1e30).softmax(-1) * allowed * factors;
  return merge_heads(in, at::einsum("bhls,bshe->blhe", {weights, heads_of(in, "qkv.weight", 2)}));
}
}  // namespace

}  // namespace lra::mixers
