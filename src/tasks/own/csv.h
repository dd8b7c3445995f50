// Comma-separated values (RFC 4180), and with other separators: quoted fields may hold separators,
// line ends and, doubled, quotes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lra::tasks {

// The separator of a file that does not say: the first of comma, semicolon and tab that its first
// record has outside quotes; a comma if it has none. Spreadsheet programs write semicolons where
// numbers have decimal commas.
char separator_of(std::string_view text);

class CsvReader {
 public:
  // `text`, which must outlive the reader, is called `name` in messages. Throws lra::Error for text
  // that is not UTF-8.
  CsvReader(std::string_view text, std::string name, char separator);

  // The fields of the next record; false at the end. Line ends are LF or CR LF; empty lines at the
  // end are skipped. Throws an lra::Error that names the line for a quote that is not closed or is
  // inside an unquoted field, and for quotes that enclose whole rows of a table with tabs.
  bool next(std::vector<std::string>& fields);
  // "name:17", of the line at which the last record began.
  std::string where() const { return name_ + ":" + std::to_string(record_line_); }

 private:
  std::string quoted_field();
  void refuse_swallowed_rows(const std::string& field) const;
  std::string plain_field();
  bool at_line_end() const;
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const;

  std::string_view rest_;
  std::string name_;
  char separator_;
  int64_t line_ = 1, record_line_ = 1;
  size_t num_fields_ = 0;  // of the first record
};

}  // namespace lra::tasks
