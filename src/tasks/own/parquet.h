// Parquet files, which the Python package pyarrow reads in a child process.
#pragma once

#include <string>

#include "tasks/own/columns.h"

namespace lra::tasks {

// The only key of an object that stands for a value which JSON lacks; its value names the type.
inline constexpr const char* kOtherType = "lra type";

// Passes every row to the sink, in order. The Python is the one that LRA_INTERPRETER names, else
// python3. Throws lra::Error that names the file, or row and column.
void read_parquet(const std::string& path, Schema& schema, const OwnExampleSink& sink);

}  // namespace lra::tasks
