// Local attention as the benchmark defines it (Tay et al. 2021, appendix B.1): the sequence is cut
// into contiguous blocks that do not overlap, and a token attends to its own block only. The last
// block may be short.
//
// The released code attends within strided groups instead, under a misplaced mask
// (docs/deviations.md, 4).
#include "mixers/all.h"
#include "mixers/layers.h"
#include "ops/attention.h"

namespace lra::mixers {
namespace {

class Local : public Mixer {
 public:
  struct Config {
    int64_t block = 50;
    void fields(auto& f) { f("block", block, "tokens per block", at_least(1)); }
  };

  Local(const Config& config, const MixerShape& shape, Initializer& init) : config_(config) {
    qkv_ = register_module("qkv", std::make_shared<HeadProjection>(3, shape.model_dim, shape.heads,
                                                                   shape.head_dim, init));
    output_ = register_module(
        "output", std::make_shared<HeadMerge>(shape.model_dim, shape.heads, shape.head_dim, init));
  }

  at::Tensor forward(const at::Tensor& x_BLD, const MixerContext& context) override {
    const auto pattern = ops::diagonal_pattern(x_BLD.size(1), config_.block);
    return output_->forward(ops::packed_attention(qkv_->forward(x_BLD), pattern,
                                                  {context.mask_BL, context.mask_BL},
                                                  {context.attention_dropout, context.key}));
  }

 private:
  Config config_;
  std::shared_ptr<HeadProjection> qkv_;
  std::shared_ptr<HeadMerge> output_;
};

}  // namespace

constinit const MixerSpec kLocal = mixer_spec<Local>(
    "local", "Local Attention", "Tay et al. 2021, arXiv:2011.04006, B.1", "L b", true);

}  // namespace lra::mixers
