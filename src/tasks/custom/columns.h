// The columns of a file that hold sequences, labels and splits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tasks/custom/examples.h"

namespace lra::tasks {

struct Columns {
  std::vector<size_t> sequences;  // one or two; with `is_wide` any number
  size_t label = 0;
  std::optional<size_t> split;
  bool is_wide = false;  // each column holds one number of the only sequence
};

// The columns that `settings` name, else those with a name in common use: text, review, tokens,
// values, x and the like; two of them as text1 and text2; label, sentiment, class, y and the like;
// split. Letter case and spaces around a name do not matter. Where no column of a CSV file
// (`is_csv`) has the name of a sequence, the only one besides label and split holds the sequences;
// several are one sequence, as in tables of time series. Throws lra::Error at `where` that lists
// the columns.
Columns find_columns(const std::vector<std::string>& names, const ColumnSettings& settings,
                     const std::string& where, bool is_csv);

// True if `settings` name columns by number, c0, c1 and so on, that are not among `names`: the
// first record of the file is then an example.
bool are_numbered(const ColumnSettings& settings, const std::vector<std::string>& names);

}  // namespace lra::tasks
