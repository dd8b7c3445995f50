#include "analysis/layer_views.h"

#include "models/receptive_field.h"

namespace lra::analysis {
namespace {

class NotedLayer : public mixers::SequenceLayer {
 public:
  NotedLayer(SequenceLayerPtr layer, std::vector<LayerCall>& calls)
      : layer_(std::move(layer)), calls_(calls) {}

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    const at::Tensor y_BLD = layer_->forward(x_BLD, context);
    calls_.push_back({x_BLD, y_BLD, context.lengths_B});
    return y_BLD;
  }

 private:
  SequenceLayerPtr layer_;
  std::vector<LayerCall>& calls_;
};

class WindowedLayer : public mixers::SequenceLayer {
 public:
  WindowedLayer(SequenceLayerPtr layer, int64_t width, bool has_cls)
      : layer_(std::move(layer)), width_(width), has_cls_(has_cls) {}

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    const models::TokenBlocks windows = cut(x_BLD, context);
    layers::Context of_windows = context;
    of_windows.mask_BL = windows.padding.mask_BL;
    of_windows.lengths_B = windows.padding.lengths_B;
    if (context.stream_BLD.defined())
      of_windows.stream_BLD = cut(context.stream_BLD, context).x_KLD;
    return joined(layer_->forward(windows.x_KLD, of_windows), windows, x_BLD.size(1));
  }

 private:
  models::TokenBlocks cut(const at::Tensor& x_BLD, const layers::Context& context) const {
    return models::cut_into_blocks(x_BLD, context.lengths_B, width_, has_cls_);
  }

  // [K, width, D], with CLS one more row each -> [B, length, D]; 0 where no window was computed.
  at::Tensor joined(const at::Tensor& y_KLD, const models::TokenBlocks& windows,
                    int64_t length) const {
    const int64_t cls = has_cls_ ? 1 : 0, dim = y_KLD.size(2);
    at::Tensor rows = y_KLD.narrow(1, cls, width_);
    if (windows.places_K.defined()) {
      rows = at::zeros({windows.rows * windows.blocks, width_, dim}, rows.options())
                 .index_copy(0, windows.places_K, rows);
    }
    rows = rows.reshape({windows.rows, -1, dim}).narrow(1, 0, length - cls);
    if (!has_cls_) return rows;
    return at::cat({models::mean_of_blocks(y_KLD.select(1, 0), windows).unsqueeze(1), rows}, 1);
  }

  SequenceLayerPtr layer_;
  int64_t width_;
  bool has_cls_;
};

}  // namespace

ReplacedLayers::ReplacedLayers(
    const models::SequenceClassifier& model,
    const std::function<SequenceLayerPtr(SequenceLayerPtr, size_t)>& replace)
    : model_(model) {
  for (const auto& block : model.encoder().blocks()) {
    const SequenceLayerPtr own = block->exchange_mixer(nullptr);
    block->exchange_mixer(replace(own, own_.size()));
    own_.push_back(own);
  }
}

ReplacedLayers::~ReplacedLayers() {
  for (size_t n = 0; n < own_.size(); ++n) model_.encoder().blocks()[n]->exchange_mixer(own_[n]);
}

SequenceLayerPtr noted(SequenceLayerPtr layer, std::vector<LayerCall>& calls) {
  return std::make_shared<NotedLayer>(std::move(layer), calls);
}

SequenceLayerPtr in_windows(SequenceLayerPtr layer, int64_t width, bool has_cls) {
  return std::make_shared<WindowedLayer>(std::move(layer), width, has_cls);
}

}  // namespace lra::analysis
