#include <string_view>
#include <typeinfo>

#include "base/quoted.h"
#include "base/text_format.h"
#include "mixers/python_layer.h"

namespace lra::mixers {
namespace {

ConfigTable resolve_arguments(const ConfigTable& settings) {
  const ConfigValue* name = settings.find(kPythonClassSetting);
  const auto* text = name ? std::get_if<std::string>(&name->value) : nullptr;
  if (text && is_python_class(*text)) return settings;
  throw Error({.where = "mixer.class",
               .what = text ? "is " + in_quotes(*text) : "is missing",
               .expected = "package.module:Class"});
}

}  // namespace

bool is_python_class(std::string_view name) { return name.find(':') != std::string_view::npos; }

std::string python_failure(const std::exception& error) {
  if (dynamic_cast<const PythonError*>(&error)) return error.what();
  // The exception of LibTorch's Python library, which we do not link: only its name is known.
  const std::string_view what = error.what(), type = typeid(error).name();
  const std::string start = "the gradient of a Python class: ";
  if (type.find("python_error") != type.npos) return start + printable(error.what());
  if (what.find("modified by an inplace operation") == what.npos) return "";
  return start + printable(std::string(what.substr(0, what.find(". Hint")))) +
         "; a batch takes several calls of forward before it: one with train.trim_padding=false";
}

constinit const LayerSpec kPythonLayer = {.name = "python",
                                          .title = "Python class",
                                          .paper = "",
                                          .cost = "",
                                          .describe = [] { return std::vector<FieldInfo>(); },
                                          .resolve = resolve_arguments};

}  // namespace lra::mixers
