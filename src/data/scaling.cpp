#include "data/scaling.h"

#include <sstream>

#include "io/json.h"

namespace lra {

std::string short_number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

Scaling parse_scaling(const std::string& text, const std::string& where) {
  const Json scaling = parse_json(text, where);
  return {.means = scaling.at("mean").get<std::vector<double>>(),
          .deviations = scaling.at("deviation").get<std::vector<double>>()};
}

Scaling scaling_of(const Dataset& dataset) {
  if (!dataset.manifest().side_files.contains(kScalingFile)) return {};
  return parse_scaling(dataset.read_side_file(kScalingFile), dataset.folder() + "/" + kScalingFile);
}

}  // namespace lra
