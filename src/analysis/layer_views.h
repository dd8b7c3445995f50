// Sequence layers of a model replaced for an analysis: by ones that note what passes through them,
// or that see windows only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "mixers/sequence_layer.h"
#include "models/classifier.h"

namespace lra::analysis {

using SequenceLayerPtr = std::shared_ptr<mixers::SequenceLayer>;

// While it lives, other layers are in the place of the sequence layers of a model's blocks.
class ReplacedLayers {
 public:
  // `replace` gets each layer and its number, and returns it or another one.
  ReplacedLayers(const models::SequenceClassifier& model,
                 const std::function<SequenceLayerPtr(SequenceLayerPtr, size_t)>& replace);
  ~ReplacedLayers();
  ReplacedLayers(const ReplacedLayers&) = delete;
  ReplacedLayers& operator=(const ReplacedLayers&) = delete;

 private:
  const models::SequenceClassifier& model_;
  std::vector<SequenceLayerPtr> own_;
};

// One call of a layer; lengths as in layers::Context.
struct LayerCall {
  at::Tensor in_BLD, out_BLD, lengths_B;
};
// The layer itself, which adds each of its calls to `calls`.
SequenceLayerPtr noted(SequenceLayerPtr layer, std::vector<LayerCall>& calls);

// The layer on windows of `width` tokens, one after another, each of which it gets as a sequence of
// its own; the last one may be short. With `has_cls` the first position joins every window, and its
// output is the mean over the windows, weighted by their tokens.
SequenceLayerPtr in_windows(SequenceLayerPtr layer, int64_t width, bool has_cls);

}  // namespace lra::analysis
