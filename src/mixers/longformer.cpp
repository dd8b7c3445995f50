// Longformer (Beltagy et al. 2020, arXiv:2004.05150, section 3.1): a token attends to the window /
// 2 tokens on either side of it, to itself and to the global tokens, in one softmax. Global tokens
// attend to the whole sequence, with separate projections for their queries and for the keys and
// values they see; the others see a global token through the ordinary projections.
//
// Rulings. The global tokens are the first ones: with a CLS token, the one global position of the
// paper's classification tasks. No dilation, which the paper uses only in its language models. The
// two parts of an ordinary row share no key: the window over the tokens after the global ones, and
// the global tokens. Each of the three attentions drops weights with its own key.
//
// The released code has no global token and a window of i - 255 .. i + 256 (docs/deviations.md, 7).
#include "mixers/specs/longformer.h"
#include "mixers/sequence_layer.h"
#include "ops/attention/attention.h"

namespace lra::mixers {
namespace {

// The three attentions, as places of randomness.
enum LongformerPart : uint32_t { kGlobalRows = 0, kWindow = 1, kGlobalColumns = 2 };

class Longformer : public SequenceLayer {
 public:
  using Config = LongformerConfig;

  Longformer(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config) {
    qkv_ = add<layers::HeadProjection>("qkv", init, 3, shape.model_dim, shape.attention);
    if (config.global_tokens > 0) {
      global_query_ = add<layers::HeadProjection>("global_query", init, 1, shape.model_dim,
                                                  shape.attention, layers::LastPart::kQueries);
      global_key_value_ = add<layers::HeadProjection>("global_key_value", init, 2, shape.model_dim,
                                                      shape.attention);
    }
    output_ = add<layers::HeadMerge>("output", init, shape.model_dim, shape.attention);
  }

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    const int64_t length = x_BLD.size(1), globals = std::min(config_.global_tokens, length);
    if (globals == 0) return output_->forward(window_alone(x_BLD, context));
    const at::Tensor global_rows = attend_globally(x_BLD, globals, context);
    if (globals == length) return output_->forward(global_rows);
    const at::Tensor other_rows = attend_locally(x_BLD, globals, context);
    return output_->forward(at::cat({global_rows, other_rows}, 1));
  }

 private:
  // Keys from `left` tokens before a query to `right` after it; -1: no limit.
  static ops::AttentionPattern seeing(int64_t left, int64_t right) {
    ops::AttentionPattern pattern;
    pattern.left = left;
    pattern.right = right;
    return pattern;
  }

  ops::AttentionPattern window() const {
    return seeing(config_.window / 2, config_.causal ? 0 : config_.window / 2);
  }

  // Tokens begin .. begin + count - 1 of the mask.
  static at::Tensor part_of_mask(const layers::Context& context, int64_t begin, int64_t count) {
    if (!context.mask_BL.defined()) return {};
    return context.mask_BL.narrow(1, begin, count).contiguous();
  }

  at::Tensor window_alone(const at::Tensor& x_BLD, const layers::Context& context) const {
    return ops::packed_attention(qkv_->forward(x_BLD), window(), {context.mask_BL, context.mask_BL},
                                 layers::attention_dropout(context, kWindow));
  }

  // The rows of the global tokens [B, G, H, E].
  at::Tensor attend_globally(const at::Tensor& x_BLD, int64_t globals,
                             const layers::Context& context) const {
    const at::Tensor q_BGHE = global_query_->forward(x_BLD.narrow(1, 0, globals)).select(2, 0);
    const at::Tensor kv_BL2HE = global_key_value_->forward(x_BLD);
    return ops::attention(q_BGHE, kv_BL2HE.select(2, 0), kv_BL2HE.select(2, 1),
                          seeing(-1, config_.causal ? 0 : -1),
                          {context.mask_BL, part_of_mask(context, 0, globals)},
                          layers::attention_dropout(context, kGlobalRows));
  }

  // The rows of all other tokens [B, L - G, H, E]; every global token is before each of them, so
  // causality hides none.
  at::Tensor attend_locally(const at::Tensor& x_BLD, int64_t globals,
                            const layers::Context& context) const {
    const int64_t others = x_BLD.size(1) - globals;
    // Two products instead of parts of one: the gradient of a part is a padded copy.
    const auto local = qkv_->forward(x_BLD.narrow(1, globals, others)).unbind(2);
    const auto global = qkv_->forward(x_BLD.narrow(1, 0, globals)).unbind(2);
    const at::Tensor mask = part_of_mask(context, globals, others);
    return ops::joint_attention(
        local[0],
        {{local[1], local[2], window(), {mask, mask}, layers::attention_dropout(context, kWindow)},
         {global[1],
          global[2],
          {},
          {part_of_mask(context, 0, globals), mask},
          layers::attention_dropout(context, kGlobalColumns)}});
  }

  Config config_;
  std::shared_ptr<layers::HeadProjection> qkv_, global_query_, global_key_value_;
  std::shared_ptr<layers::HeadMerge> output_;
};

}  // namespace

constinit const LayerMaker kMakeLongformer = make_layer<Longformer>;

}  // namespace lra::mixers
