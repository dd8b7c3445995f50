#include "tasks/own/tables.h"

#include <algorithm>
#include <array>

#include "base/quoted.h"
#include "data/files.h"
#include "data/stopping.h"
#include "data/text_lines.h"
#include "io/input_file.h"
#include "io/mapped_file.h"
#include "tasks/own/csv.h"
#include "tasks/own/json_rows.h"
#include "tasks/own/parquet.h"

namespace lra::tasks {
namespace {

// A sequence of numbers may be as long as memory allows.
constexpr size_t kMaxLineBytes = size_t{1} << 30;

void read_json_lines(const std::string& path, Schema& schema, const OwnExampleSink& sink) {
  const InputFile file(path);
  JsonRows rows(schema, sink);
  const auto add = [&](std::string_view line, int64_t number, uint64_t) {
    rows.add_object(line, path + ":" + std::to_string(number));
  };
  read_lines(reader_of(file), path, add, {.line_bytes = kMaxLineBytes});
}

// A header would have names.
bool is_numbers(const std::vector<std::string>& fields) {
  return std::ranges::all_of(fields, [](const std::string& field) {
    return !field.empty() && field.find_first_not_of("0123456789+-.eE ") == std::string::npos;
  });
}

// The header that pandas writes for an array: 0, 1, 2 and so on. Two columns may be an example.
bool is_counted_header(const std::vector<std::string>& fields, const ColumnSettings& settings) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] != std::to_string(i)) return false;
  }
  return fields.size() > 2 || settings.label == "0" || settings.label == "1";
}

// Numbers with a mark that may be one of decimals or of thousands.
struct MarkedNumbers {
  char mark;
  int64_t num_thousand = 0, num_decimal = 0;
  std::pair<std::string, std::string> first = {};  // of thousands: where, and what
};

// The rows of a CSV file under its columns.
class CsvRows {
 public:
  CsvRows(const std::string& path, std::string_view text, Schema& schema)
      : separator_(has_ending(path, ".tsv") ? '\t' : separator_of(text)),
        reader_(text, path, separator_),
        schema_(schema) {
    if (!reader_.next(names_)) refuse_data(path, "is empty", "a header and rows");
    fields_ = names_;
    const bool is_counted = is_counted_header(names_, schema.settings());
    const bool has_numbers = are_numbered(schema.settings(), names_);
    is_row_ = !is_counted && (is_numbers(names_) || has_numbers);
    for (size_t i = 0; (is_row_ || has_numbers) && i < names_.size(); ++i) {
      names_[i] = "c" + std::to_string(i);
    }
    const std::string header = reader_.where();
    if (!is_row_ && !reader_.next(fields_)) {
      refuse_data(path, "has no rows below its header", "a row for each example",
                  "lines end with LF or CR LF");
    }
    expect_all_fields();
    columns_ = schema.columns_of(names_, header, TableKind::kCsv,
                                 [&](size_t i) { return is_single_number(plain_number(i)); });
  }

  void read(const OwnExampleSink& sink) {
    do {
      throw_if_stopped();
      expect_all_fields();
      if (!is_row_ && !is_numbers(names_) && fields_ == names_) {
        refuse_data(reader_.where(), "repeats the header", "an example",
                    "remove this line: files were joined with their headers");
      }
      sink(reader_.where(), example());
    } while (reader_.next(fields_));
    refuse_thousands();
  }

 private:
  void expect_all_fields() const {
    if (fields_.size() == names_.size()) return;
    refuse_data(reader_.where(), "has " + std::to_string(fields_.size()) + " fields",
                std::to_string(names_.size()));
  }

  // A field with a decimal point, where commas separate no fields.
  std::string plain_number(size_t column) const {
    std::string number = fields_[column];
    if (separator_ == ';') std::ranges::replace(number, ',', '.');
    return number;
  }

  void count_marks(const std::string& number) {
    if (number.find_first_of(",.eE") == std::string::npos) ++num_whole_;
    for (MarkedNumbers& marked : marked_) {
      const size_t mark = number.find(marked.mark);
      if (mark == std::string::npos || (marked.mark == ',' && separator_ != ';')) continue;
      const size_t first = number.find_first_not_of(" +-");
      const bool is_thousand =
          mark > first && mark - first <= 3 && number[first] != '0' && number.size() - mark == 4;
      if (!is_thousand) {
        ++marked.num_decimal;
      } else if (marked.num_thousand++ == 0) {
        marked.first = {reader_.where(), number};
      }
    }
  }

  // "629" beside "3,202" or "3.202", and never another number of digits behind the mark.
  void refuse_thousands() const {
    for (const MarkedNumbers& marked : marked_) {
      if (marked.num_thousand < 2 || marked.num_decimal > 0 || num_whole_ == 0) continue;
      refuse_data(marked.first.first,
                  in_quotes(marked.first.second) + " has three digits behind its " +
                      (marked.mark == ',' ? "comma" : "point") +
                      ", like all numbers with one, and others have none",
                  "decimal numbers, or whole ones",
                  "write thousands without a mark, and 3.202 as 3.2020 if it is meant");
    }
  }

  OwnSequence wide_sequence() {
    OwnSequence sequence{.channels = 1};
    for (const size_t column : columns_.sequences) {
      count_marks(fields_[column]);
      const OwnSequence one = numbers_of_text(plain_number(column), reader_.where());
      if (one.numbers.size() != 1) {
        refuse_data(reader_.where(),
                    "column " + in_quotes(names_[column]) + " holds " + in_quotes(fields_[column]),
                    "a number, as in all columns but label and split");
      }
      sequence.add(one);
    }
    return sequence;
  }

  OwnExample example() {
    OwnExample example{.label = fields_[columns_.label]};
    if (columns_.split) example.split = fields_[*columns_.split];
    for (const size_t i : columns_.ignored) schema_.see_ignored(names_[i], fields_[i], example);
    if (columns_.is_wide) {
      example.sequences.push_back(wide_sequence());
      return example;
    }
    for (const size_t column : columns_.sequences) {
      example.sequences.push_back({.text = std::move(fields_[column])});
    }
    return example;
  }

  const char separator_;
  CsvReader reader_;
  Schema& schema_;
  std::vector<std::string> names_, fields_;
  Columns columns_;
  bool is_row_ = false;
  std::array<MarkedNumbers, 2> marked_ = {{{.mark = ','}, {.mark = '.'}}};
  int64_t num_whole_ = 0;
};

void read_csv(const std::string& path, Schema& schema, const OwnExampleSink& sink) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  CsvRows(path, text, schema).read(sink);
}

struct TableFormat {
  const char* ending;
  void (*read)(const std::string&, Schema&, const OwnExampleSink&);
};
constexpr std::array kFormats = {TableFormat{".jsonl", read_json_lines},
                                 TableFormat{".ndjson", read_json_lines},
                                 TableFormat{".csv", read_csv}, TableFormat{".tsv", read_csv},
                                 TableFormat{".parquet", read_parquet}};

}  // namespace

bool is_table(const std::string& path) {
  return std::ranges::any_of(kFormats, [&](const auto& f) { return has_ending(path, f.ending); });
}

void read_table(const std::string& path, Schema& schema, const OwnExampleSink& sink) {
  for (const TableFormat& format : kFormats) {
    if (has_ending(path, format.ending)) return format.read(path, schema, sink);
  }
  refuse_data(path, "has an unknown ending", ".jsonl, .csv, .tsv or .parquet");
}

}  // namespace lra::tasks
