// Examples in rows of JSON: the lines of JSON Lines, and rows of Parquet.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "tasks/own/columns.h"

namespace lra::tasks {

// Passes rows to the sink. The first one, or begin(), says which columns there are. Throws
// lra::Error that names row and column for values that are not of an example.
class JsonRows {
 public:
  JsonRows(Schema& schema, const OwnExampleSink& sink) : schema_(schema), sink_(sink) {}

  // A row that is a JSON object.
  void add_object(std::string_view text, const std::string& where);
  // Names of the columns of rows that are lists.
  void begin(std::vector<std::string> names) { names_ = std::move(names); }
  void add_list(std::string_view text, const std::string& where);

 private:
  using Field = std::function<const Json*(size_t column)>;  // null: the row lacks it
  OwnExample example_of(const Field& field, const std::string& where);
  void see_ignored(const std::string& name, const Json& value, OwnExample& example);
  const Json& read(const Field& field, size_t column, const std::string& where) const;

  Schema& schema_;
  const OwnExampleSink& sink_;
  std::vector<std::string> names_;
  Columns columns_;
  bool has_columns_ = false;
};

// The sequence that a list in JSON is, such as [[1, 2], [3, 4]].
OwnSequence sequence_of_json(std::string_view text, const std::string& where);

}  // namespace lra::tasks
