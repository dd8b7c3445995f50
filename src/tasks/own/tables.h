// Tables with an example in each row: JSON Lines, CSV and Parquet.
#pragma once

#include <string>

#include "tasks/own/columns.h"

namespace lra::tasks {

// True for the endings that read_table() takes: .jsonl, .ndjson, .csv, .tsv, .parquet.
bool is_table(const std::string& path);

// Passes every row of the table to the sink, in order. A sequence is a text, a list of numbers, or
// a list of lists with the channels of a position, or one number in each of many columns; a label
// is a text or a whole number. A CSV file whose first record has only numbers, other than 0, 1, 2
// and so on, or whose columns the settings name c0, c1 and so on, has no header: its columns get
// these names. A .csv may have semicolons or tabs (csv.h). Throws lra::Error that names file and
// line, or row, for anything else.
void read_table(const std::string& path, Schema& schema, const OwnExampleSink& sink);

}  // namespace lra::tasks
