// Settings of the encoder that all models share.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace lra::models {

struct ModelConfig {
  int64_t layers = 4, heads = 4, embed_dim = 256, qkv_dim = 256, mlp_dim = 1024;
  double dropout = 0.1, attention_dropout = 0.1;
  int64_t receptive_field = 0;
  std::string positions = "sinusoid", pooling = "cls", classifier = "mlp", pair_features = "nli";
  std::string norm = "layer", norm_placement = "pre", feed_forward = "mlp",
              dropout_kind = "element";
  bool residual = true, embedding_dropout = true;

  void fields(auto& f) {
    f("layers", layers, "encoder blocks", between(1, 256));
    f("heads", heads, "attention heads; must divide qkv_dim", between(1, 1024));
    f("embed_dim", embed_dim, "width of the residual stream", between(1, 65536));
    f("qkv_dim", qkv_dim, "width of queries, keys and values over all heads", between(1, 65536));
    f("mlp_dim", mlp_dim, "hidden width of the feed-forward layers and of the classifier",
      between(1, 262144));
    f("dropout", dropout, "dropout rate for embeddings, mixer outputs and both places in the MLP",
      dropout_rate());
    f("attention_dropout", attention_dropout,
      "dropout rate for attention weights, if the mechanism has them", dropout_rate());
    f("embedding_dropout", embedding_dropout,
      "apply model.dropout to embeddings too, not only inside the blocks");
    f("receptive_field", receptive_field,
      "a control: the encoder sees blocks of this many tokens, one at a time, and the classifier "
      "reads the mean over the blocks; 0: all tokens at once",
      at_least(0));
    f("positions", positions, "position embedding", one_of({"sinusoid", "learned", "none"}));
    f("norm", norm,
      "layer: layer norm; batch: over all valid positions of a channel; scale: one learned length; "
      "rms: by the root mean square",
      one_of({"layer", "batch", "scale", "rms"}));
    f("norm_placement", norm_placement,
      "pre: before mixer and feed-forward layer, and once after the last block; post: after each "
      "sum with the residual stream",
      one_of({"pre", "post"}));
    f("feed_forward", feed_forward,
      "mlp: two layers with GELU; glu: the first is a gated linear unit; none: no such layer",
      one_of({"mlp", "glu", "none"}));
    f("dropout_kind", dropout_kind,
      "element: drops single numbers; tied: drops whole channels along the sequence, at the "
      "outputs of mixers and feed-forward layers",
      one_of({"element", "tied"}));
    f("residual", residual, "add the input of mixer and feed-forward layer to their output");
    f("pooling", pooling,
      "what the classifier reads: a learned CLS vector put in front, the mean over tokens, or the "
      "first token without CLS (as retrieval was released)",
      one_of({"cls", "mean", "first"}));
    f("classifier", classifier,
      "linear: one layer; mlp: a hidden layer of mlp_dim with ReLU; mlp3: a second hidden layer of "
      "half that (as retrieval was released)",
      one_of({"linear", "mlp", "mlp3"}));
    f("pair_features", pair_features,
      "two documents x1, x2 to one vector; nli: [x1, x2, x1 * x2, x1 - x2]; concat: [x1, x2] (as "
      "released)",
      one_of({"nli", "concat"}));
  }
};

}  // namespace lra::models
