// The accuracy of a trivial classifier.
#pragma once

#include <string>

namespace lra::checks {

// A trivial classifier that a model has to beat.
struct Baseline {
  std::string name;     // "majority"
  double accuracy = 0;  // on the test split, 0..1
};

}  // namespace lra::checks
