#include "mixers/python_layer.h"

#include <torch/library.h>

#include "io/config_json.h"
#include "mixers/sequence_layer.h"
#include "ops/boxed.h"

namespace lra::mixers {
namespace {

// Every operator returns a last string: why the user's code failed, one line, or empty.
TORCH_LIBRARY(lra_python, m) {
  m.def("source(str name) -> (str, str)");
  m.def("faults(str name, bool has_padding, bool bf16) -> (str, str)");
  m.def("make(str name, str settings, str shape, int seed) -> (int, Tensor[], Tensor[], str, str)");
  m.def(
      "forward(int layer, Tensor x, Tensor? mask, Tensor? lengths, bool training, float "
      "attention_dropout, float dropout, bool tied_dropout, int key, int step_key, int step, int "
      "part) -> (Tensor, str)");
  m.def("groups(str name, str settings, str shape) -> (str, str)");
  m.def("drop(int layer) -> str");
}

constexpr c10::DispatchKey kAnyBackend = c10::DispatchKey::CompositeImplicitAutograd;

// The results of the operator without the error.
ops::Stack call_python(const char* operator_name, const std::string& class_name,
                       ops::Stack arguments) {
  const auto op = ops::find_boxed_op(operator_name);
  if (!op.hasKernelForDispatchKey(kAnyBackend)) {
    throw NeedsInterpreter(
        {.where = class_name,
         .what = "is a Python class, but this program runs without an interpreter",
         .advice = "start the same command with: python -m lra"});
  }
  ops::Stack results = ops::call_op(op, std::move(arguments));
  const std::string error = torch::jit::pop(results).toStringRef();
  if (!error.empty()) throw PythonError({.where = class_name, .what = error});
  return results;
}

c10::IValue optional_tensor(const at::Tensor& tensor) {
  return tensor.defined() ? c10::IValue(tensor) : c10::IValue();
}

// A module below the Python one, whose parameters have their names there.
class Branch : public layers::Layer {
 public:
  using Layer::register_in_group;
};

struct PlacedName {
  torch::nn::Module* module;
  std::string name;  // without dots
};
// The module that holds `path`, made when missing: LibTorch refuses dots in names.
PlacedName place_in(torch::nn::Module& root, const std::string& path) {
  torch::nn::Module* module = &root;
  std::string rest = path;
  for (size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
    const std::string name = rest.substr(0, dot);
    const auto children = module->named_children();
    const auto* child = children.find(name);
    module = child ? child->get() : module->register_module(name, std::make_shared<Branch>()).get();
    rest.erase(0, dot + 1);
  }
  return {module, rest};
}

// [mixer] as the operators take it.
struct Call {
  explicit Call(ConfigTable settings) {
    name = std::get<std::string>(settings.find(kPythonClassSetting)->value);
    settings.erase(kPythonClassSetting);
    arguments = json_text(config_to_json(settings));
  }
  std::string name, arguments;
};

Json shape_json(const LayerShape& shape) {
  return {{"dim", shape.model_dim},
          {"heads", shape.attention.heads},
          {"head_dim", shape.attention.head_dim},
          {"max_length", shape.max_length},
          {"layer", shape.layer}};
}

class PythonLayer : public SequenceLayer {
 public:
  PythonLayer(const layers::Initializer& init, const ConfigTable& settings,
              const LayerShape& shape) {
    const Call call(settings);
    class_ = call.name;
    Json place = shape_json(shape);
    place["path"] = init.name();
    place["seed"] = static_cast<int64_t>(init.seed());
    place["device"] = init.device().str();
    const ops::Stack made =
        call_python("lra_python::make", class_,
                    {class_, call.arguments, json_text(place), static_cast<int64_t>(init.key())});
    layer_ = made[0].toInt();
    const Json names = parse_json(made[3].toStringRef(), class_);
    for (size_t i = 0; const at::Tensor& tensor : made[1].toTensorVector()) {
      add_parameter(names["parameters"][i], names["groups"][i], tensor);
      ++i;
    }
    for (size_t i = 0; const at::Tensor& tensor : made[2].toTensorVector()) {
      const PlacedName place_of = place_in(*this, names["buffers"][i++]);
      place_of.module->register_buffer(place_of.name, tensor);
    }
  }
  ~PythonLayer() override {
    try {
      call_python("lra_python::drop", class_, {layer_});
    } catch (const std::exception&) {
      // The interpreter is ending, and the module with it.
    }
  }

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    const ops::Stack result = call_python(
        "lra_python::forward", class_,
        {layer_, x_BLD, optional_tensor(context.mask_BL), optional_tensor(context.lengths_B),
         context.training, context.attention_dropout, context.dropout, context.tied_dropout,
         static_cast<int64_t>(context.key), static_cast<int64_t>(context.step_key), context.step,
         static_cast<int64_t>(context.part)});
    return result[0].toTensor();
  }

 private:
  void add_parameter(const std::string& path, const std::string& group, const at::Tensor& tensor) {
    const PlacedName place = place_in(*this, path);
    if (group.empty()) {
      place.module->register_parameter(place.name, tensor);
    } else if (auto* branch = dynamic_cast<Branch*>(place.module)) {
      branch->register_in_group(group, place.name, tensor);
    } else {
      register_in_group(group, place.name, tensor);
    }
  }

  std::string class_;
  int64_t layer_ = 0;
};

}  // namespace

bool is_python_layer(const torch::nn::Module& module) {
  return dynamic_cast<const PythonLayer*>(&module) != nullptr;
}

bool has_interpreter() {
  return ops::find_boxed_op("lra_python::make").hasKernelForDispatchKey(kAnyBackend);
}

PythonSource python_source(const std::string& name) {
  const ops::Stack result = call_python("lra_python::source", name, {name});
  const Json json = parse_json(result[0].toStringRef(), name);
  return {.source_sha256 = json["source_sha256"],
          .packages = json["packages"].get<std::map<std::string, std::string>>()};
}

std::vector<std::string> python_faults(const std::string& name, bool has_padding, bool bf16) {
  const ops::Stack result = call_python("lra_python::faults", name, {name, has_padding, bf16});
  return parse_json(result[0].toStringRef(), name).get<std::vector<std::string>>();
}

std::vector<PythonGroup> python_groups(const ConfigTable& settings, const LayerShape& shape) {
  const Call call(settings);
  const ops::Stack result = call_python("lra_python::groups", call.name,
                                        {call.name, call.arguments, json_text(shape_json(shape))});
  std::vector<PythonGroup> groups;
  for (const Json& group : parse_json(result[0].toStringRef(), call.name)) {
    PythonGroup& added = groups.emplace_back();
    added.name = group["name"];
    added.learning_rate = group["learning_rate"];
    if (!group["weight_decay"].is_null()) added.weight_decay = group["weight_decay"].get<double>();
  }
  return groups;
}

constinit const LayerMaker kMakePythonLayer =
    [](const layers::Initializer& init, const ConfigTable& settings,
       const LayerShape& shape) -> std::shared_ptr<SequenceLayer> {
  return std::make_shared<PythonLayer>(init, settings, shape);
};

}  // namespace lra::mixers
