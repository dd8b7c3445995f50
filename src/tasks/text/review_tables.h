// The reviews as the community shares them besides: a table with a row for each, in CSV, JSON Lines
// or Parquet.
#pragma once

#include <string>
#include <vector>

#include "tasks/text/reviews.h"

namespace lra::tasks {

struct ReviewTables {
  Reviews reviews = {};
  bool drawn_split = false;  // the tables do not say which reviews are the test's
};

// Reads tables with the columns text or review, and label or sentiment: 0 and 1, neg and pos, or
// negative and positive. Reviews are numbered in order and have the rating 0, unknown. The split is
// named by a column `split` or by the names of several files. A single table without either has its
// test drawn: every second review of a keyed permutation, the same in every run. Throws lra::Error
// that names file and line.
ReviewTables open_review_tables(const std::vector<std::string>& sources, Progress& progress);

}  // namespace lra::tasks
