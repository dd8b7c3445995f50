// Names of the classes of own data.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace lra::tasks {

// Numbers by their size if all are, else names by the alphabet. Throws lra::Error for a single
// class and for real numbers.
std::vector<std::string> sorted_class_names(const std::set<std::string>& names);

}  // namespace lra::tasks
