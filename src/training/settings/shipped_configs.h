// The presets and published results that this program was built with. A user may edit configs/, or
// name another folder with LRA_CONFIGS: what is read there is then not what was published.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lra::training {

struct ShippedConfig {
  std::string_view name;    // "tasks/listops.toml", in the folder of configs
  std::string_view sha256;  // lower-case hex digits
};

// The files of configs/tasks and configs/models, and literature.json, at the time of the build.
std::span<const ShippedConfig> shipped_configs();

// Empty if `name` in config_folder() has the content of the shipped file; else one sentence that
// names it.
std::string edited_config(const std::string& name);

// The same for the files that a run's preset and its division follow from: those of its task, its
// model and the base Transformer; the first that was edited.
std::string edited_presets(const std::string& task, const std::string& model);

}  // namespace lra::training
