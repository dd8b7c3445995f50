// Reformer attention (Kitaev et al. 2020, arXiv:2001.04451, sections 2 and 2.1): queries and keys
// share one projection, keys are queries of unit length, and a token attends to the tokens that a
// random hash puts into its bucket.
//
// One round: bucket = argmax([q R, -q R]) for a random R [E, buckets / 2] (angular hashing; the
// length of q does not matter); tokens are sorted by bucket and, inside a bucket, by position; the
// order is cut into chunks. A token sees the tokens of its bucket in its own chunk and the one
// before. With several rounds it sees the union: equations 5 and 6 subtract log N_ij from the score
// of a pair that N_ij rounds show, which counts the pair once; here a pair is hidden after its
// first round and the rounds are merged by their logsumexp. A token sees itself only if no round
// shows it another one. There is no wrap-around: the first chunk has no predecessor.
//
// With `causal` no later token is seen; the cuts between chunks still depend on all tokens, as in
// the paper.
//
// Padding is sorted behind all tokens and never seen. In training, the rotations are redrawn at
// every step; otherwise they depend only on layer, head and round, so that the value of a
// checkpoint does not depend on the seed of a run. Reversible layers and chunked feed-forward
// layers, which save memory and compute the same, are not part of a mixer.
//
// Per round and head, hashing takes L * buckets / 2 * E multiply-adds and keeps nothing, sorting is
// linear, and attention takes a few chunks per token. With buckets in proportion to the length,
// hashing grows with L^2: it is as large as the scores at a length of about chunk^2.
//
// R of head h and round r: normal numbers, rounded to float32, row by row from RandomStream(
// derive_key(key, kMixer, h, r)); key = derive_key(context.step_key, kMixer) while training and
// derive_key(0, kMixer, layer) otherwise. Attention dropout of round r: the operator's, with
// derive_key(context.key, kDropout, r) and the places in the sorted order; the benchmark's own code
// takes the rate and does not use it (docs/deviations.md, 9 and 19).
#include "mixers/specs/reformer.h"
#include "base/rng.h"
#include "layers/on_device.h"
#include "mixers/sequence_layer.h"
#include "ops/attention/attention.h"
#include "ops/pointwise/row_norm.h"
#include "ops/precision.h"
#include "ops/sorted_runs.h"

namespace lra::mixers {
namespace {

using at::Tensor;

class Reformer : public SequenceLayer {
 public:
  using Config = ReformerConfig;

  Reformer(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config) {
    // Kitaev et al.: chunks twice as long as the average bucket.
    if (config_.buckets == 0) {
      const int64_t chunks = (shape.max_length + config.chunk - 1) / config.chunk;
      config_.buckets = std::min(2 * chunks, config_.kMostBuckets);
    }
    query_value_ =
        add<layers::HeadProjection>("query_value", init, 2, shape.model_dim, shape.attention);
    output_ = add<layers::HeadMerge>("output", init, shape.model_dim, shape.attention);
    const uint64_t key = derive_key(0, RandomUse::kMixer, static_cast<uint32_t>(shape.layer));
    const Tensor like = at::empty({1, 1, shape.attention.heads, shape.attention.head_dim});
    fixed_rotations_ = layers::on_device(rotations(key, like), init.device());
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    const auto projected = query_value_->forward(x_BLD).unbind(2);
    const Tensor &q_BLHE = projected[0], &v_BLHE = projected[1];
    const Tensor k_BLHE = ops::unit_rows(q_BLHE);  // zero vectors stay zero
    const auto rounds = hash_rounds(q_BLHE, context);
    std::vector<ops::AttentionPart> parts;
    for (size_t r = 0; r < rounds.size(); ++r) {
      ops::AttentionPattern pattern;
      pattern.runs = rounds[r];
      parts.push_back({k_BLHE,
                       v_BLHE,
                       pattern,
                       {},
                       layers::attention_dropout(context, static_cast<uint32_t>(r))});
    }
    return output_->forward(ops::joint_attention(q_BLHE, parts));
  }

 private:
  Tensor rotations(uint64_t key, const Tensor& like_BLHE) const {
    return ops::draw_rotations(like_BLHE, config_.rounds, config_.buckets / 2, key);
  }

  std::vector<Tensor> hash_rounds(const Tensor& q_BLHE, const layers::Context& context) const {
    const uint64_t key = derive_key(context.step_key, RandomUse::kMixer);
    const Tensor drawn = context.training ? rotations(key, q_BLHE) : fixed_rotations_;
    const Tensor buckets =
        ops::hash_buckets(q_BLHE, drawn.to(ops::wide_type(q_BLHE)), context.mask_BL);
    return ops::sorted_runs(buckets, config_.buckets,
                            {config_.chunk, config_.causal, /*lone_rows_see_themselves=*/true});
  }

  Config config_;
  std::shared_ptr<layers::HeadProjection> query_value_;
  std::shared_ptr<layers::HeadMerge> output_;
  Tensor fixed_rotations_;
};

}  // namespace

constinit const LayerMaker kMakeReformer = make_layer<Reformer>;

}  // namespace lra::mixers
