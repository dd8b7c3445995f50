// The columns of a file that hold sequences, labels and splits.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/own/examples.h"

namespace lra::tasks {

// Places of columns in one file.
struct Columns {
  std::vector<size_t> sequences;  // one or two; with `is_wide` any number
  size_t label = 0;
  std::optional<size_t> split;
  bool is_wide = false;         // each column holds one number of the only sequence
  std::vector<size_t> ignored;  // the others
};

enum class TableKind { kCsv, kRows, kArrays };

// The columns that all files of an import share. The first file decides which are read; later ones
// must have these under the same names, in any order.
class Schema {
 public:
  explicit Schema(ColumnSettings settings) : settings_(std::move(settings)) {}

  const ColumnSettings& settings() const { return settings_; }

  // The columns that the settings name, else those with a name in common use: text, review, tokens,
  // values, x and the like; two of them as text1 and text2; label, sentiment, class, y and the
  // like; split. Letter case and spaces around a name do not matter. A table whose other columns
  // all hold a single number (`is_number` of a place, in the first row) is one sequence, as tables
  // of time series are; where no column of a CSV file has the name of a sequence, the only one
  // besides label and split holds the sequences. Throws lra::Error at `where` for missing and
  // ambiguous columns, for columns that look like a mask, an index or a split under another name,
  // and for files that differ.
  Columns columns_of(const std::vector<std::string>& names, const std::string& where,
                     TableKind kind, const std::function<bool(size_t)>& is_number);

  // Takes note of a key that a row has and the first row does not. Throws lra::Error at `where` if
  // it has the name of a column that would be read.
  void add_late_column(const std::string& name, const std::string& where);
  // Takes note of a value in a column that is not read, also in `example` if it may be an id.
  void see_ignored(const std::string& name, std::string_view value, OwnExample& example);
  // Throws lra::Error if a column that is not read holds nothing but names of splits.
  void refuse_unread_splits() const;

  // Names in the first file.
  const std::vector<std::string>& sequence_names() const { return sequences_; }
  const std::string& label_name() const { return label_; }
  const std::string& split_name() const { return split_; }  // empty: none
  bool is_wide() const { return is_wide_; }
  std::vector<std::string> ignored_names() const;
  // The number by which OwnExample::ids knows it.
  uint32_t number_of_ignored(const std::string& name) const;
  // True for names of ids, such as "film_id", "userId" and "Patient", and of files.
  static bool has_name_of_id(const std::string& name);

 private:
  struct IgnoredValues {
    std::string where;
    uint32_t number = 0;  // in the order in which columns were seen
    bool all_splits = true, any = false, may_be_ids = true;
    std::set<uint64_t> keys = {};  // different ones, while they may be ids
    int64_t count = 0;
  };

  void note_ignored(const std::string& name, const std::string& where);
  static bool may_be_id(const std::string& name, std::string_view value, IgnoredValues& values);
  Columns same_columns(const std::vector<std::string>& names, const std::string& where) const;
  [[noreturn]] static void refuse_late(const std::string& name, const std::string& where,
                                       const std::string& before);

  ColumnSettings settings_;
  std::vector<std::string> sequences_;  // empty: no file was seen
  std::string label_, split_, first_;   // the last: the place of the first header
  bool is_wide_ = false;
  std::map<std::string, IgnoredValues> ignored_;
};

// True for names of sequences of token ids: tokens, input_ids and the like.
bool is_name_of_tokens(std::string_view name);

// True if `settings` name columns by number, c0, c1 and so on, that are not among `names`.
bool are_numbered(const ColumnSettings& settings, const std::vector<std::string>& names);

}  // namespace lra::tasks
