#include "training/settings/shipped_configs.h"

#include <algorithm>

#include "io/digest.h"
#include "mixers/python_layer.h"
#include "tasks/all.h"
#include "training/settings/fairness.h"
#include "training/settings/presets.h"

namespace lra::training {

std::string edited_config(const std::string& name) {
  const auto shipped = std::ranges::find(shipped_configs(), name, &ShippedConfig::name);
  const std::string file = "configs/" + name;
  if (shipped == shipped_configs().end()) return file + " did not come with this program";
  if (digest_file(DigestKind::kSha256, config_folder() + "/" + name) == shipped->sha256) return "";
  return file + " is not the file that this program was built with";
}

std::string edited_presets(const std::string& task, const std::string& model) {
  std::string edited = edited_config("tasks/" + std::string(tasks::find_task(task).name) + ".toml");
  std::vector<std::string> models = {kBaseModel};
  if (!mixers::is_python_class(model)) {
    models.push_back(model);
    std::ranges::copy(frames_of(model), std::back_inserter(models));
  }
  for (const std::string& of : models) {
    if (edited.empty()) edited = edited_config("models/" + of + ".toml");
  }
  return edited;
}

}  // namespace lra::training
