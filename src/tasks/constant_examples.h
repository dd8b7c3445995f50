// Finds examples of which all positions are the same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lra::tasks {

// The examples of a split that hold one token, or the same values, at all of at least 8 positions.
struct ConstantExamples {
  std::vector<bool> is_constant;  // by example; empty if they are few
  std::string doubt;              // a sentence about them; empty if they are few
  bool are_nearly_all = false;    // over 90 % of the split are, and alike: nothing to learn from
};

// By the name of the split. A few such examples may be quiet recordings or black pictures: only a
// twentieth of a split, and ten, are many. Only a user's own numbers are judged.
std::map<std::string, ConstantExamples> constant_examples(const Dataset& dataset);

}  // namespace lra::tasks
