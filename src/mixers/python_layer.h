// A sequence layer that is a Python class: the interpreter that runs this program creates and calls
// it (docs/python.md). Its parameters are the tensors of the torch.nn.Module under their names
// there, so that optimizer, checkpoints and groups treat them like the program's own.
//
// The calls go through the operators lra_python::*, which the package `lra` implements; in a
// program that was not started by an interpreter they have no implementation.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mixers/layer_spec.h"

namespace torch::nn {
class Module;
}

namespace lra::mixers {

// "package.module:Class", the name under which such a model is trained and recorded.
bool is_python_class(std::string_view name);

// The layer itself. `mixer.class` is its name; every other setting of [mixer] is an argument of the
// class. With `mixer.whole`, a table that describes the task, it is a whole model
// (models/python_model.h): its x are tokens [B, L] or values [B, L, C], its result is logits.
extern const LayerSpec kPythonLayer;
inline constexpr const char* kPythonClassSetting = "class";

// True of the layer that kPythonLayer makes.
bool is_python_layer(const torch::nn::Module& module);

// Thrown where a Python class is wanted and no interpreter runs this program.
class NeedsInterpreter : public Error {
  using Error::Error;
};
// Thrown where the user's code fails: raises, or returns another shape, dtype or device.
class PythonError : public Error {
  using Error::Error;
};
// Reason why the user's code failed, in one line, if `error` comes from it: a PythonError, or an
// error that its own gradient raised. Otherwise empty.
std::string python_failure(const std::exception& error);
// True if an interpreter runs this program.
bool has_interpreter();

// Origin of the code of a class.
struct PythonSource {
  std::string source_sha256;                    // of the code that defines the class, in hex
  std::map<std::string, std::string> packages;  // name -> version, Python itself among them
};
// Throws lra::Error when the class cannot be imported.
PythonSource python_source(const std::string& name);
// Mistakes of a layer of the class that random examples show: "takes no mask: padding takes part"
// (python/lra/_probe.py). Its groups or parameters were asked for before, each for one call.
// `has_padding` of the task; `bf16` compares the layer with itself in float32, too.
std::vector<std::string> python_faults(const std::string& name, bool has_padding, bool bf16);

// The parameters that carry the same attribute `_optim` = {"lr": ..., "weight_decay": ...}, as in
// the code of S4 (Gu et al. 2022), are one group.
struct PythonGroup {
  std::string name;  // "optim1"
  double learning_rate = 0;
  std::optional<double> weight_decay = {};
};
// `settings` are those of [mixer]. Throws lra::Error when no such layer can be made.
std::vector<PythonGroup> python_groups(const ConfigTable& settings, const LayerShape& shape);

}  // namespace lra::mixers
