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
  const bool from_python =
      std::string_view(typeid(error).name()).find("python_error") != std::string_view::npos;
  return from_python ? "the gradient of a Python class: " + printable(error.what()) : "";
}

constinit const LayerSpec kPythonLayer = {.name = "python",
                                          .title = "Python class",
                                          .paper = "",
                                          .cost = "",
                                          .describe = [] { return std::vector<FieldInfo>(); },
                                          .resolve = resolve_arguments};

}  // namespace lra::mixers
