// ChordMixer (Khalitov et al. 2023, arXiv:2206.05852, section 3): y = MLP(x) at each position,
// whose D channels are M = 1 + ceil(log2 Lmax) tracks of neighboring channels; then track m is
// rotated along the sequence, in an example of N tokens
//
//   out[p, track m] = y[(p + o_m) mod N, track m],   o_0 = 0, o_m = 2^(m - 1),
//
// so that ceil(log2 N) layers connect all positions. Each example is rotated within its own length
// and no information of another or of padding reaches it. If M does not divide D, the first D mod M
// tracks are one channel wider; the paper has tracks of one width (docs/deviations.md, 73). MLP is
// fc2(GELU(fc1(x))) with the dropout of the block between. A model has as many layers as the
// paper's if model.layers = M - 1 and model.feed_forward = "none".
#include "mixers/specs/chordmixer.h"
#include "layers/feed_forward.h"
#include "mixers/sequence_layer.h"
#include "ops/rotate_tracks.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr uint32_t kHiddenDropout = 0xC40D;  // keeps its key apart from others of the layer

class ChordMixer : public SequenceLayer {
 public:
  using Config = ChordMixerConfig;

  ChordMixer(const layers::Initializer& init, const Config& config, const LayerShape& shape) {
    while (int64_t{1} << (num_tracks_ - 1) < shape.max_length) ++num_tracks_;
    mlp_ = add<layers::FeedForward>("mlp", init, shape.model_dim,
                                    config.hidden == 0 ? shape.model_dim : config.hidden);
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    const uint64_t key = derive_key(context.key, RandomUse::kDropout, kHiddenDropout);
    return ops::rotate_tracks(mlp_->forward(x_BLD, context.dropout, key), num_tracks_,
                              context.mask_BL);
  }

 private:
  int64_t num_tracks_ = 1;
  std::shared_ptr<layers::FeedForward> mlp_;
};

}  // namespace

constinit const LayerMaker kMakeChordMixer = make_layer<ChordMixer>;

}  // namespace lra::mixers
