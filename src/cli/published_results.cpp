#include "cli/published_results.h"

#include "io/progress.h"
#include "training/settings/presets.h"
#include "training/settings/shipped_configs.h"

namespace lra::cli {

report::Literature published_results() {
  const std::string name = "literature.json";
  const std::string edited = training::edited_config(name);
  if (!edited.empty()) print_message(edited + ": its figures are shown as unverified");
  return report::read_literature(training::config_folder() + "/" + name, edited);
}

}  // namespace lra::cli
