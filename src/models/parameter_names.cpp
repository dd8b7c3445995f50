#include "models/parameter_names.h"

#include <cctype>
#include <map>

#include "layers/layer.h"

namespace lra::models {
namespace {

// LibTorch refuses dots in a module's own name; files use PyTorch's "layers.0".
std::string state_name(std::string name) {
  constexpr std::string_view kLayer = "layers_";
  for (size_t end = 0; (end = name.find(kLayer, end)) != std::string::npos;) {
    end += kLayer.size();
    if (std::isdigit(static_cast<unsigned char>(name[end]))) name[end - 1] = '.';
  }
  return name;
}

}  // namespace

std::vector<Parameter> named_parameters_of(const torch::nn::Module& root) {
  std::map<std::string, std::string> groups;
  const auto add_groups = [&](const std::string& prefix, const torch::nn::Module& module) {
    const auto* layer = dynamic_cast<const layers::Layer*>(&module);
    if (!layer) return;
    for (const auto& [name, group] : layer->groups()) groups[prefix + name] = group;
  };
  add_groups("", root);
  for (const auto& module : root.named_modules("", /*include_self=*/false)) {
    add_groups(module.key() + ".", *module.value());
  }
  std::vector<Parameter> list;
  for (const auto& item : root.named_parameters()) {
    const auto group = groups.find(item.key());
    list.push_back(
        {state_name(item.key()), item.value(), group == groups.end() ? "" : group->second});
  }
  return list;
}

std::vector<Parameter> named_buffers_of(const torch::nn::Module& root) {
  std::vector<Parameter> list;
  for (const auto& item : root.named_buffers())
    list.push_back({state_name(item.key()), item.value()});
  return list;
}

}  // namespace lra::models
