// Settings of the encoder that all models share.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace lra::models {

struct ModelConfig {
  int64_t layers = 4, heads = 4, embed_dim = 256, qkv_dim = 256, mlp_dim = 1024;
  double dropout = 0.1, attention_dropout = 0.1;
  std::string positions = "sinusoid", pooling = "cls", classifier = "mlp";

  void fields(auto& f) {
    f("layers", layers, "encoder blocks", at_least(1));
    f("heads", heads, "attention heads; must divide qkv_dim", at_least(1));
    f("embed_dim", embed_dim, "width of the residual stream", at_least(1));
    f("qkv_dim", qkv_dim, "width of queries, keys and values over all heads", at_least(1));
    f("mlp_dim", mlp_dim, "hidden width of the feed-forward layers and of the classifier",
      at_least(1));
    f("dropout", dropout, "rate for embeddings, mixer outputs and both MLP spots", rate());
    f("attention_dropout", attention_dropout,
      "rate for attention weights, where the mechanism has them", rate());
    f("positions", positions, "position embedding", one_of({"sinusoid", "learned"}));
    f("pooling", pooling,
      "what the classifier reads: a learned CLS vector put in front, or the mean over tokens",
      one_of({"cls", "mean"}));
    f("classifier", classifier, "linear: one layer; mlp: a hidden layer of mlp_dim with ReLU",
      one_of({"linear", "mlp"}));
  }
};

}  // namespace lra::models
