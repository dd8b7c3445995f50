// Norms over the channels of [B, L, D].
#pragma once

#include <memory>
#include <string>

#include "layers/context.h"
#include "layers/layer.h"
#include "layers/running_statistics.h"

namespace lra::layers {

class Norm : public Layer {
 public:
  // The norm, whose padded positions may hold anything finite, and x for what else is computed from
  // it (ops::layer_norm_of_stream).
  struct OfStream {
    at::Tensor norm_BLD, stream_BLD;
  };
  virtual OfStream of_stream(const at::Tensor& x_BLD, const Context& context) = 0;
  at::Tensor forward(const at::Tensor& x_BLD, const Context& context) {
    return of_stream(x_BLD, context).norm_BLD;
  }
};

// (x - mean) / sqrt(variance + eps) * weight + bias over the channels of each position (Ba et al.
// 2016, arXiv:1607.06450).
class LayerNorm : public Norm {
 public:
  static constexpr double kEps = 1e-6;
  LayerNorm(const Initializer& init, int64_t dim);
  OfStream of_stream(const at::Tensor& x_BLD, const Context& context) override;
  at::Tensor weight, bias;
};

// x / sqrt(mean of squares + eps) * weight (Zhang and Sennrich 2019, arXiv:1910.07467).
class RmsNorm : public Norm {
 public:
  RmsNorm(const Initializer& init, int64_t dim);
  OfStream of_stream(const at::Tensor& x_BLD, const Context& context) override;

 private:
  at::Tensor weight_;
};

// g x / sqrt(sum of squares + eps) with one learned g, at first sqrt(D) (Nguyen and Salazar 2019,
// arXiv:1910.05895).
class ScaleNorm : public Norm {
 public:
  ScaleNorm(const Initializer& init, int64_t dim);
  OfStream of_stream(const at::Tensor& x_BLD, const Context& context) override;

 private:
  at::Tensor scale_;
};

// (x - mean) / sqrt(variance + eps) * weight + bias over all valid positions of a channel (Ioffe
// and Szegedy 2015, arXiv:1502.03167). While training those of the micro-batch on this rank, and
// the running ones follow by `kMomentum` once a step, with the statistics of the whole step;
// otherwise the running ones.
class BatchNorm : public Norm, public RunningStatistics {
 public:
  static constexpr double kEps = 1e-5;
  BatchNorm(const Initializer& init, int64_t dim);
  OfStream of_stream(const at::Tensor& x_BLD, const Context& context) override;

 private:
  at::Tensor weight_, bias_;
};

// "layer", "batch", "scale" or "rms".
std::shared_ptr<Norm> make_norm(const std::string& kind, const Initializer& init, int64_t dim);

}  // namespace lra::layers
