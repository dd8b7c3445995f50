// Mean and deviation of each channel, by which an import standardized its values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lra {

inline constexpr const char* kScalingFile = "scaling.json";

struct Scaling {
  std::vector<double> means, deviations;  // of each channel; empty: values are stored as they were

  double original(double stored, size_t channel) const {
    return means.empty() ? stored : means.at(channel) + deviations.at(channel) * stored;
  }
  bool operator==(const Scaling&) const = default;
  double deviation(size_t channel) const { return means.empty() ? 1 : deviations.at(channel); }
};

// A split, and how its values were standardized.
struct ScaledSplit {
  Split split;
  Scaling scaling;
};

// Writes a number in at most six digits: "0.25", "1e+20".
std::string short_number(double value);

// Parses the JSON text of the side file or of task.scaling; `where` for messages.
Scaling parse_scaling(const std::string& text, const std::string& where);

// Reads the side file of a dataset. Without one, values are stored as they were.
Scaling scaling_of(const Dataset& dataset);

}  // namespace lra
