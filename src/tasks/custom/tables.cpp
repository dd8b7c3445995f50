#include "tasks/custom/tables.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/command_text.h"
#include "base/error.h"
#include "base/quoted.h"
#include "io/input_file.h"
#include "io/json.h"
#include "io/mapped_file.h"
#include "tasks/custom/columns.h"
#include "tasks/custom/csv.h"
#include "tasks/files.h"
#include "tasks/stopping.h"
#include "tasks/text_lines.h"

namespace lra::tasks {
namespace {

// A sequence of numbers may be as long as memory allows.
constexpr size_t kMaxLineBytes = size_t{1} << 30;
constexpr JsonLimits kJsonLimits = {.max_bytes = kMaxLineBytes, .max_depth = 8, .max_keys = 1000};

void add_json_number(const Json& value, const std::string& where, OwnSequence& to) {
  if (!value.is_number()) refuse_data(where, "a list holds " + json_type_name(value), "numbers");
  add_number(value.get<double>(), value.is_number_integer(), where, to);
}

OwnSequence sequence_of(const Json& value, const std::string& where) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  if (!value.is_array()) {
    refuse_data(where, "a sequence is " + json_type_name(value), "a text or a list of numbers");
  }
  OwnSequence sequence{.channels = 1};
  const bool has_channels = !value.empty() && value[0].is_array();
  if (has_channels) sequence.channels = static_cast<int64_t>(value[0].size());
  for (const Json& position : value) {
    if (!has_channels) {
      add_json_number(position, where, sequence);
      continue;
    }
    if (!position.is_array() || static_cast<int64_t>(position.size()) != sequence.channels) {
      refuse_data(where, "positions have different numbers of channels",
                  std::to_string(sequence.channels) + " in each");
    }
    for (const Json& number : position) add_json_number(number, where, sequence);
  }
  return sequence;
}

std::string label_of(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() || value.is_boolean()) return value.dump();
  refuse_data(where, "the label is " + json_type_name(value), "a text or a whole number");
}

// Rows that are JSON objects. The first one says which columns there are.
class JsonRows {
 public:
  JsonRows(const ColumnSettings& settings, const OwnExampleSink& sink)
      : settings_(settings), sink_(sink) {}

  void add(std::string_view text, const std::string& where) {
    const Json row = parse_json(text, where, kJsonLimits);
    if (!row.is_object()) refuse_data(where, "is " + json_type_name(row), "a JSON object");
    if (names_.empty()) {
      for (const auto& [key, unused] : row.items()) names_.push_back(key);
      columns_ = find_columns(names_, settings_, where, false);
    }
    OwnExample example;
    for (const size_t column : columns_.sequences) {
      example.sequences.push_back(sequence_of(field(row, column, where), where));
    }
    example.label = label_of(field(row, columns_.label, where), where);
    if (columns_.split) example.split = label_of(field(row, *columns_.split, where), where);
    sink_(where, std::move(example));
  }

 private:
  const Json& field(const Json& row, size_t column, const std::string& where) const {
    const auto found = row.find(names_[column]);
    if (found == row.end()) refuse_data(where, "has no field " + in_quotes(names_[column]), "one");
    return *found;
  }

  const ColumnSettings& settings_;
  const OwnExampleSink& sink_;
  std::vector<std::string> names_;
  Columns columns_;
};

void read_json_lines(const std::string& path, const ColumnSettings& settings,
                     const OwnExampleSink& sink) {
  const InputFile file(path);
  JsonRows rows(settings, sink);
  const auto add = [&](std::string_view line, int64_t number, uint64_t) {
    rows.add(line, path + ":" + std::to_string(number));
  };
  read_lines(reader_of(file), path, add, {.line_bytes = kMaxLineBytes});
}

// A header would have names.
bool is_numbers(const std::vector<std::string>& fields) {
  return std::ranges::all_of(fields, [](const std::string& field) {
    return !field.empty() && field.find_first_not_of("0123456789+-.eE ") == std::string::npos;
  });
}

// `has_decimal_commas`: they separate no fields.
OwnSequence wide_sequence(const std::vector<std::string>& fields, const Columns& columns,
                          const std::string& where, bool has_decimal_commas) {
  OwnSequence sequence{.channels = 1};
  for (const size_t column : columns.sequences) {
    std::string number = fields[column];
    if (has_decimal_commas) std::ranges::replace(number, ',', '.');
    const OwnSequence one = numbers_of_text(number, where);
    if (one.numbers.size() != 1) {
      refuse_data(where,
                  "column " + std::to_string(column + 1) + " holds " + in_quotes(fields[column]),
                  "a number, as in all columns but label and split");
    }
    add_number(one.numbers[0], one.all_ids, where, sequence);
  }
  return sequence;
}

void read_csv(const std::string& path, const ColumnSettings& settings, const OwnExampleSink& sink) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  const char separator = has_ending(path, ".tsv") ? '\t' : separator_of(text);
  CsvReader reader(text, path, separator);
  std::vector<std::string> names, fields;
  if (!reader.next(names)) refuse_data(path, "is empty", "a header and rows");
  bool is_row = is_numbers(names) || are_numbered(settings, names);
  fields = names;
  for (size_t i = 0; is_row && i < names.size(); ++i) names[i] = "c" + std::to_string(i);
  const Columns columns = find_columns(names, settings, reader.where(), true);
  for (; is_row || reader.next(fields); is_row = false) {
    throw_if_stopped();
    const std::string where = reader.where();
    if (fields.size() != names.size()) {
      refuse_data(where, "has " + std::to_string(fields.size()) + " fields",
                  std::to_string(names.size()));
    }
    OwnExample example{.label = fields[columns.label]};
    if (columns.is_wide) {
      example.sequences.push_back(wide_sequence(fields, columns, where, separator == ';'));
    } else {
      for (const size_t column : columns.sequences) {
        example.sequences.push_back({.text = std::move(fields[column])});
      }
    }
    if (columns.split) example.split = fields[*columns.split];
    sink(where, std::move(example));
  }
}

// Writes "R" and a row as JSON, or "E" and why it cannot, line by line.
constexpr const char* kParquetScript = R"(
import json, sys
try:
    import pyarrow.parquet
except ImportError:
    sys.exit(3)
try:
    for batch in pyarrow.parquet.ParquetFile(sys.argv[1]).iter_batches(1024):
        for row in batch.to_pylist():
            print("R" + json.dumps(row, allow_nan=False))
except Exception as error:
    print("E" + " ".join(str(error).split()))
)";

struct EndProcess {
  void operator()(FILE* pipe) const { ::pclose(pipe); }
};

void read_parquet(const std::string& path, const ColumnSettings& settings,
                  const OwnExampleSink& sink) {
  const InputFile readable(path);  // otherwise Python would report the problem
  const char* named = std::getenv("LRA_INTERPRETER");
  const std::string python = named ? named : "python3";
  const std::string command =
      shell_word(python) + " -c " + shell_word(kParquetScript) + " " + shell_word(path);
  std::unique_ptr<FILE, EndProcess> pipe(::popen(command.c_str(), "re"));
  if (!pipe) throw io_error(python, "cannot be started", errno);
  JsonRows rows(settings, sink);
  std::unique_ptr<char, void (*)(void*)> line(nullptr, std::free);
  size_t capacity = 0;
  for (int64_t row = 1;; ++row) {
    throw_if_stopped();
    char* buffer = line.release();
    const ssize_t size = ::getline(&buffer, &capacity, pipe.get());
    line.reset(buffer);
    if (size < 1) break;
    const std::string_view text(buffer, static_cast<size_t>(size - (buffer[size - 1] == '\n')));
    if (text.starts_with('E')) refuse_data(path, std::string(text.substr(1)), "a Parquet file");
    rows.add(text.substr(1), path + " row " + std::to_string(row));
  }
  const int status = ::pclose(pipe.release());
  if (status == 0) return;
  const bool lacks_package = WIFEXITED(status) && WEXITSTATUS(status) == 3;
  throw Error({.where = path,
               .what = "Parquet files are read by the Python package pyarrow, but " +
                       in_quotes(python, 100) +
                       (lacks_package ? " does not have it" : " could not be run"),
               .advice = "install it with: " + python +
                         " -m pip install pyarrow, or name a Python that has it in "
                         "LRA_INTERPRETER"});
}

struct TableFormat {
  const char* ending;
  void (*read)(const std::string&, const ColumnSettings&, const OwnExampleSink&);
};
constexpr std::array kFormats = {TableFormat{".jsonl", read_json_lines},
                                 TableFormat{".ndjson", read_json_lines},
                                 TableFormat{".csv", read_csv}, TableFormat{".tsv", read_csv},
                                 TableFormat{".parquet", read_parquet}};

}  // namespace

bool is_table(const std::string& path) {
  return std::ranges::any_of(kFormats, [&](const auto& f) { return has_ending(path, f.ending); });
}

void read_table(const std::string& path, const ColumnSettings& settings,
                const OwnExampleSink& sink) {
  for (const TableFormat& format : kFormats) {
    if (has_ending(path, format.ending)) return format.read(path, settings, sink);
  }
  refuse_data(path, "has an unknown ending", ".jsonl, .csv, .tsv or .parquet");
}

}  // namespace lra::tasks
