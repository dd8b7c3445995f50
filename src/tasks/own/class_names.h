// Names of the classes of own data.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace lra::tasks {

// A label as it names a class: "1" for "1.0". Throws lra::Error at `where` for an empty label and
// for one that is longer than a name.
std::string class_name(const std::string& label, const std::string& where);

// Numbers by their size if all are, else names by the alphabet. Throws lra::Error for a single
// class and for real numbers.
std::vector<std::string> sorted_class_names(const std::set<std::string>& names);

// Returns a sentence for names that are equal up to letter case and spaces, and for each that may
// mark what is missing: nan, None, #N/A, -1 among three or more, a space.
std::vector<std::string> doubts_of_class_names(const std::vector<std::string>& names);

}  // namespace lra::tasks
