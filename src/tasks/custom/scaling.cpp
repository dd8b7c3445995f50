#include "tasks/custom/scaling.h"

#include "io/json.h"

namespace lra::tasks {

Scaling scaling_of(const Dataset& dataset) {
  if (!dataset.manifest().side_files.contains(kScalingFile)) return {};
  const std::string path = dataset.folder() + "/" + kScalingFile;
  const Json scaling = parse_json(dataset.read_side_file(kScalingFile), path);
  return {.means = scaling.at("mean").get<std::vector<double>>(),
          .deviations = scaling.at("deviation").get<std::vector<double>>()};
}

}  // namespace lra::tasks
