// The reviews as the community shares them besides: a table with a row for each.
#pragma once

#include <string>
#include <vector>

#include "tasks/text/reviews.h"

namespace lra::tasks {

// Reads tables and folders of tables (data/python_reader.h) whose labels are 0 and 1, neg and pos,
// or negative and positive. Reviews are numbered in order and have the rating 0, unknown. A single
// table without splits has its test drawn: every second review of a keyed permutation, the same in
// every run. `scratch` is a folder for temporary files. Throws lra::Error that names file and row.
Reviews open_review_tables(const std::vector<std::string>& sources, const std::string& scratch,
                           Progress& progress);

}  // namespace lra::tasks
