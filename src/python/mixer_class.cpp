// torch.classes.lra.Mixer: any mixer of the table, for the modules of lra.nn.
//
// Its tensors are those that Python holds as parameters and buffers: one storage, one gradient.
#include <torch/custom_class.h>
#include <torch/library.h>

#include "io/config_json.h"
#include "mixers/sequence_layer.h"
#include "models/parameter_names.h"
#include "python/named_tensors.h"

namespace lra::python {
namespace {

class Mixer : public torch::CustomClassHolder {
 public:
  // `settings` is [mixer] as JSON; `path` and `seed` decide the initial weights, as those of the
  // program at "encoder.layers.0.mixer". Throws lra::Error, a RuntimeError in Python.
  Mixer(const std::string& name, const std::string& settings, int64_t dim, int64_t heads,
        int64_t head_dim, int64_t max_length, int64_t layer, const std::string& path, int64_t seed)
      : layer_(mixers::find_mixer(name).make(
            initializer(static_cast<uint64_t>(seed), path),
            config_from_json(parse_json(settings, name), "settings of " + name),
            {.model_dim = dim,
             .attention = {.heads = heads, .head_dim = head_dim},
             .max_length = max_length,
             .layer = layer})) {}

  // x [B, L, D] -> [B, L, D]; mask [B, L] uint8, 1 = token; keys as in layers/context.h.
  at::Tensor forward(const at::Tensor& x_BLD, const std::optional<at::Tensor>& mask_BL,
                     const std::optional<at::Tensor>& lengths_B, bool training,
                     double attention_dropout, double dropout, bool tied_dropout, int64_t key,
                     int64_t step_key, int64_t step, int64_t part) {
    layers::Context context{.attention_dropout = attention_dropout,
                            .key = static_cast<uint64_t>(key),
                            .step_key = static_cast<uint64_t>(step_key),
                            .training = training,
                            .step = step,
                            .part = static_cast<uint32_t>(part),
                            .dropout = dropout,
                            .tied_dropout = tied_dropout};
    if (mask_BL) context.mask_BL = *mask_BL;
    if (lengths_B) context.lengths_B = *lengths_B;
    return layer_->forward(x_BLD, context);
  }

  c10::Dict<std::string, at::Tensor> parameters() const {
    return by_name(models::named_parameters_of(*layer_));
  }
  c10::Dict<std::string, at::Tensor> buffers() const {
    return by_name(models::named_buffers_of(*layer_));
  }
  // The group of each parameter that is not in the main one.
  c10::Dict<std::string, std::string> groups() const {
    c10::Dict<std::string, std::string> groups;
    for (const models::Parameter& p : models::named_parameters_of(*layer_)) {
      if (!p.group.empty()) groups.insert(p.name, p.group);
    }
    return groups;
  }

 private:
  static layers::Initializer initializer(uint64_t seed, const std::string& path) {
    const layers::Initializer root(seed);
    return path.empty() ? root : root.of(path);
  }

  std::shared_ptr<mixers::SequenceLayer> layer_;
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.class_<Mixer>("Mixer")
      .def(torch::init<std::string, std::string, int64_t, int64_t, int64_t, int64_t, int64_t,
                       std::string, int64_t>())
      .def("forward", &Mixer::forward)
      .def("parameters", &Mixer::parameters)
      .def("buffers", &Mixer::buffers)
      .def("groups", &Mixer::groups);
}

}  // namespace lra::python
