// The dense oracle of Reformer attention, and what is particular to the mixer.
#include "base/rng.h"
#include "mixers/test_oracles.h"

namespace lra::mixers {
namespace {

at::Tensor reformer_oracle(const OracleInput& in);

const ConformanceRow kReformerRow{"reformer", reformer_oracle,
                                  "rounds = 2\nchunk = 4\nbuckets = 6\ncausal = false", 0};

using at::Tensor;

constexpr uint64_t kHashKey = 0xC0FFEE;

// R of one head and round [E, buckets / 2], as the head of reformer.cpp says.
Tensor rotation(uint64_t key, int64_t head, int64_t round, int64_t dim, int64_t columns) {
  Tensor r = at::empty({dim, columns}, at::kDouble);
  RandomStream stream(derive_key(key, RandomUse::kMixer, static_cast<uint32_t>(head),
                                 static_cast<uint32_t>(round)));
  for (int64_t n = 0; n < r.numel(); ++n) {
    r.mutable_data_ptr<double>()[n] = static_cast<float>(stream.normal());
  }
  return r;
}

// One head of one example: which pairs are seen, and what dropout multiplies their weights by.
struct Pairs {
  Tensor allowed, factors;  // bool and double [L, L]
};

// Rank of each token when they are sorted by bucket, then position.
std::vector<int64_t> ranks_of(const std::vector<int64_t>& buckets) {
  std::vector<int64_t> ranks(buckets.size(), 0);
  for (size_t i = 0; i < buckets.size(); ++i) {
    for (size_t j = 0; j < buckets.size(); ++j) {
      ranks[i] += buckets[j] < buckets[i] || (buckets[j] == buckets[i] && j < i);
    }
  }
  return ranks;
}

class PairFinder {
 public:
  PairFinder(const OracleInput& in, uint64_t hash_key) : in_(in), hash_key_(hash_key) {}

  Pairs find(const Tensor& q_LE, int64_t batch, int64_t head) const {
    const int64_t length = q_LE.size(0), rounds = setting(in_, "rounds");
    Pairs pairs{at::zeros({length, length}, at::kBool), at::ones({length, length}, at::kDouble)};
    std::vector<int64_t> ranks;
    for (int64_t round = 0; round < rounds; ++round) {
      const auto buckets = buckets_of(q_LE, batch, head, round);
      ranks = ranks_of(buckets);
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t j = 0; j < length; ++j) {
          if (i != j && shows(buckets, ranks, i, j) && !is_allowed(pairs, i, j)) {
            allow(pairs, i, j, factor(plane(batch, head), round, ranks, i, j));
          }
        }
      }
    }
    const Tensor lone = pairs.allowed.any(-1).logical_not() & in_.valid_BL[batch];
    for (int64_t i = 0; i < length; ++i) {
      if (lone[i].item<bool>()) {
        allow(pairs, i, i, factor(plane(batch, head), rounds - 1, ranks, i, i));
      }
    }
    return pairs;
  }

 private:
  int64_t plane(int64_t batch, int64_t head) const {
    return batch * in_.shape.attention.heads + head;
  }

  std::vector<int64_t> buckets_of(const Tensor& q_LE, int64_t batch, int64_t head,
                                  int64_t round) const {
    const int64_t count = setting(in_, "buckets");
    const Tensor y = at::matmul(q_LE, rotation(hash_key_, head, round, q_LE.size(1), count / 2));
    const Tensor best = at::cat({y, -y}, -1).argmax(-1);
    std::vector<int64_t> buckets;
    for (int64_t i = 0; i < q_LE.size(0); ++i) {
      buckets.push_back(in_.valid_BL[batch][i].item<bool>() ? best[i].item<int64_t>() : count);
    }
    return buckets;
  }

  bool shows(const std::vector<int64_t>& buckets, const std::vector<int64_t>& ranks, int64_t i,
             int64_t j) const {
    const auto query = static_cast<size_t>(i), key = static_cast<size_t>(j);
    if (buckets[query] != buckets[key] || buckets[query] == setting(in_, "buckets")) return false;
    if (std::get<bool>(in_.config.find("causal")->value) && j > i) return false;
    const int64_t chunk = setting(in_, "chunk");
    const int64_t back = ranks[query] / chunk - ranks[key] / chunk;
    return back == 0 || back == 1;
  }

  double factor(int64_t plane, int64_t round, const std::vector<int64_t>& ranks, int64_t i,
                int64_t j) const {
    const uint64_t key =
        derive_key(in_.dropout.key, RandomUse::kDropout, static_cast<uint32_t>(round));
    const uint32_t value = dropout_value(key, static_cast<uint32_t>(plane),
                                         static_cast<uint32_t>(ranks[static_cast<size_t>(i)]),
                                         static_cast<uint32_t>(ranks[static_cast<size_t>(j)]));
    const double rate = in_.dropout.rate;
    return value < dropout_threshold(rate) ? 0.0 : double{dropout_scale(rate)};
  }

  static bool is_allowed(const Pairs& pairs, int64_t i, int64_t j) {
    return pairs.allowed.const_data_ptr<bool>()[i * pairs.allowed.size(1) + j];
  }
  static void allow(Pairs& pairs, int64_t i, int64_t j, double factor) {
    const int64_t n = i * pairs.allowed.size(1) + j;
    pairs.allowed.mutable_data_ptr<bool>()[n] = true;
    pairs.factors.mutable_data_ptr<double>()[n] = factor;
  }

  const OracleInput& in_;
  uint64_t hash_key_;
};

Tensor hashed_attention(const OracleInput& in, uint64_t hash_key) {
  const Tensor q = heads_of(in, "query_value.weight", 0), v = heads_of(in, "query_value.weight", 1);
  const Tensor k = q / q.norm(2, -1, true);
  const PairFinder finder(in, hash_key);
  std::vector<Tensor> examples;
  for (int64_t b = 0; b < q.size(0); ++b) {
    std::vector<Tensor> heads;
    for (int64_t h = 0; h < q.size(2); ++h) {
      const auto head = [&](const Tensor& t) { return t.select(0, b).select(1, h); };
      const Pairs pairs = finder.find(head(q).detach(), b, h);
      const Tensor scores =
          at::matmul(head(q), head(k).t()) / std::sqrt(static_cast<double>(q.size(3)));
      const Tensor weights = scores.masked_fill(~pairs.allowed, -1e30).softmax(-1);
      heads.push_back(at::matmul(weights * pairs.allowed * pairs.factors, head(v)));
    }
    examples.push_back(at::stack(heads, 1));
  }
  return merge_heads(in, at::stack(examples));
}

Tensor training_oracle(const OracleInput& in) {
  return hashed_attention(in, derive_key(in.dropout.key, RandomUse::kMixer));
}

TestedMixer tested(const Conformance& conformance, int64_t length) {
  return {
      kReformer,
      conformance,
      {.model_dim = 6, .attention = {.heads = 2, .head_dim = 5}, .max_length = length, .layer = 3}};
}

Tensor input(int64_t length) {
  return 2 * ops::random_tensor({3, length, 6}, static_cast<uint64_t>(length));
}

void expect_definition(const Conformance& conformance, const layers::Context& context,
                       int64_t length) {
  const TestedMixer mixer = tested(conformance, length);
  ops::expect_agrees(mixer.function(context, at::kFloat), at::kFloat, mixer.oracle(context),
                     mixer.inputs(input(length)), {.value = 1e-5, .gradient = 1e-4});
}

TEST(Reformer, AgreesWithItsDefinitionUnderEveryOption) {
  for (const char* config : {"rounds = 1\nchunk = 4\nbuckets = 2\ncausal = false",
                             "rounds = 3\nchunk = 5\nbuckets = 4\ncausal = true",
                             "rounds = 4\nchunk = 1\nbuckets = 8\ncausal = false",
                             "rounds = 2\nchunk = 100\nbuckets = 40\ncausal = true"}) {
    const Conformance conformance{"reformer", reformer_oracle, config, 0};
    for (const int64_t length : {1, 2, 9, 40}) {
      for (const Tensor& mask : {Tensor(), ragged_mask(length)}) {
        SCOPED_TRACE(testing::Message() << config << " L " << length << " " << mask.defined());
        expect_definition(conformance, {mask, 0.3, kHashKey}, length);
      }
    }
  }
}

constexpr Conformance kTraining{"reformer", training_oracle,
                                "rounds = 2\nchunk = 4\nbuckets = 6\ncausal = false", 0};

TEST(Reformer, HashesByTheKeyOfTheStepWhileTraining) {
  for (const uint64_t key : {uint64_t{1}, kHashKey}) {
    layers::Context context{ragged_mask(33), 0.2, key};
    context.step_key = key;
    context.training = true;
    expect_definition(kTraining, context, 33);
  }
}

TEST(Reformer, HashesTheSameAtEveryStepAndForEverySeedOutsideTraining) {
  const TestedMixer mixer = tested(kTraining, 33);
  const auto module = mixer.make(at::kFloat), other = mixer.make(at::kFloat, 2);
  for (size_t i = 0; i < module->parameters().size(); ++i) {
    other->parameters()[i].set_requires_grad(false).copy_(module->parameters()[i].detach());
  }
  const Tensor x = input(33).to(at::kFloat);
  const Tensor y = module->forward(x, {{}, 0, 1});
  EXPECT_TRUE(at::equal(module->forward(x, {{}, 0, 2}), y));
  EXPECT_TRUE(at::equal(other->forward(x, {{}, 0, 1}), y));
  layers::Context training{{}, 0, 1};
  training.training = true;
  EXPECT_FALSE(at::equal(module->forward(x, training), y));
}

// A single chunk is used: the cuts between chunks depend on all tokens, in the paper's definition
// too.
TEST(Reformer, SeesNoLaterTokenWhenCausal) {
  const Conformance causal{"reformer", reformer_oracle,
                           "rounds = 2\nchunk = 100\nbuckets = 4\ncausal = true", 0};
  const auto mixer = tested(causal, 33).make(at::kFloat);
  const Tensor x = input(33).to(at::kFloat);
  Tensor changed = x.clone();
  changed.narrow(1, 20, 13).mul_(-3);
  const Tensor before = mixer->forward(x, {}), after = mixer->forward(changed, {});
  EXPECT_LE(ops::relative_error(after.narrow(1, 0, 20), before.narrow(1, 0, 20)), 1e-6);
  EXPECT_GT(ops::relative_error(after.narrow(1, 20, 13), before.narrow(1, 20, 13)), 1e-2);
}

TEST(Reformer, GivesALoneTokenItsOwnValue) {
  const TestedMixer mixer = tested(kTraining, 1);
  const auto f = mixer.function({}, at::kDouble);
  const auto in = mixer.inputs(input(1));
  const Tensor values = in[1].narrow(0, 10, 10);  // of the query_value weight
  const Tensor expected = at::matmul(at::matmul(in[0], values.t()), in[2].t());
  EXPECT_LE(ops::relative_error(f(in), expected), 1e-12);
}

TEST(Reformer, DerivesAnEvenNumberOfBucketsFromTheMaximumLength) {
  // 2 ceil(33 / 8) = 10, also for a shorter input.
  const Conformance derived{"reformer", reformer_oracle,
                            "rounds = 1\nchunk = 8\nbuckets = 0\ncausal = false", 0};
  const Conformance given{"reformer", reformer_oracle,
                          "rounds = 1\nchunk = 8\nbuckets = 10\ncausal = false", 0};
  const Tensor x = input(20).to(at::kFloat);
  EXPECT_TRUE(at::equal(tested(derived, 33).make(at::kFloat)->forward(x, {}),
                        tested(given, 33).make(at::kFloat)->forward(x, {})));
}

TEST(Reformer, RefusesAnOddNumberOfBuckets) {
  const Conformance odd{"reformer", reformer_oracle, "buckets = 7", 0};
  EXPECT_THROW(tested(odd, 8).make(at::kFloat), Error);
}

at::Tensor reformer_oracle(const OracleInput& in) {
  return hashed_attention(in,
                          derive_key(0, RandomUse::kMixer, static_cast<uint32_t>(in.shape.layer)));
}
}  // namespace

}  // namespace lra::mixers
