#include "tasks/own/csv.h"

#include <algorithm>

#include "base/error.h"
#include "data/text_lines.h"

namespace lra::tasks {

char separator_of(std::string_view text) {
  bool is_quoted = false;
  bool has_semicolon = false, has_tab = false;
  for (const char c : text) {
    is_quoted = is_quoted != (c == '"');
    if (is_quoted) continue;
    if (c == ',') return ',';
    if (c == '\n') break;
    has_semicolon = has_semicolon || c == ';';
    has_tab = has_tab || c == '\t';
  }
  return has_semicolon ? ';' : has_tab ? '\t' : ',';
}

CsvReader::CsvReader(std::string_view text, std::string name, char separator)
    : rest_(checked_text(text, name)), name_(std::move(name)), separator_(separator) {
  const size_t last = rest_.find_last_not_of("\r\n");
  rest_ = rest_.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

bool CsvReader::at_line_end() const {
  return rest_.empty() || rest_[0] == '\n' || rest_.starts_with("\r\n");
}

void CsvReader::fail(const std::string& what, const std::string& expected) const {
  throw Error({.where = where(), .what = what, .expected = expected});
}

std::string CsvReader::quoted_field() {
  std::string field;
  rest_.remove_prefix(1);
  for (;;) {
    const size_t quote = rest_.find('"');
    if (quote == std::string_view::npos) {
      fail("a quote is not closed", "a second \" before the end of the file");
    }
    field += rest_.substr(0, quote);
    rest_.remove_prefix(quote + 1);
    if (!rest_.starts_with('"')) break;
    field += '"';
    rest_.remove_prefix(1);
  }
  refuse_swallowed_rows(field);
  line_ += std::ranges::count(field, '\n');
  if (!at_line_end() && rest_[0] != separator_) {
    fail("text follows a closing quote",
         std::string("'") + separator_ + "' or the end of the line; quotes within are doubled");
  }
  return field;
}

// Programs that separate by tabs often write a text that begins with a quote as it is. All rows up
// to the next text that ends with one would be its own. Texts with line ends seldom hold tabs.
void CsvReader::refuse_swallowed_rows(const std::string& field) const {
  const auto num_lines = static_cast<size_t>(std::ranges::count(field, '\n'));
  const auto num_tabs = static_cast<size_t>(std::ranges::count(field, '\t'));
  if (separator_ != '\t' || num_lines == 0 || num_fields_ < 2) return;
  if (num_tabs != num_lines * (num_fields_ - 1)) return;
  fail("the quote that opens here is closed " + std::to_string(num_lines) +
           " lines below, and what lies between looks like whole rows",
       "quotes around whole fields; a quote that belongs to a text is doubled, and the text in "
       "quotes");
}

std::string CsvReader::plain_field() {
  const char ends[] = {separator_, '\n', '\0'};
  size_t size = std::min(rest_.find_first_of(ends), rest_.size());
  // The carriage return of a line end; others are text.
  if (size > 0 && size < rest_.size() && rest_[size] == '\n' && rest_[size - 1] == '\r') --size;
  const std::string field(rest_.substr(0, size));
  if (field.find('"') != std::string::npos) {
    fail("a quote stands within a field", "the whole field in quotes, and quotes within doubled");
  }
  rest_.remove_prefix(size);
  return field;
}

bool CsvReader::next(std::vector<std::string>& fields) {
  fields.clear();
  if (rest_.empty()) return false;
  record_line_ = line_;
  for (;;) {
    fields.push_back(rest_.starts_with('"') ? quoted_field() : plain_field());
    if (at_line_end()) break;
    rest_.remove_prefix(1);  // the separator
  }
  if (rest_.starts_with('\r')) rest_.remove_prefix(1);
  if (rest_.starts_with('\n')) rest_.remove_prefix(1);
  if (num_fields_ == 0) num_fields_ = fields.size();
  ++line_;
  return true;
}

}  // namespace lra::tasks
