// Comma-separated values of a user's own data, and numbers in text.
// Covers: src/tasks/own/csv.cpp src/tasks/own/examples.cpp
// Without: split_of_name split_of_file
#include "fuzz_target.h"
#include "tasks/own/csv.h"
#include "tasks/own/examples.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  const bool is_csv = input.byte() % 2 == 0;
  lra::fuzz::accepts([&] {
    const char separator = is_csv ? lra::tasks::separator_of(input.text()) : '\t';
    lra::tasks::CsvReader reader(input.text(), "a.csv", separator);
    std::vector<std::string> fields;
    size_t bytes = 0;
    while (reader.next(fields)) {
      LRA_CHECK(!fields.empty());
      for (const std::string& field : fields) {
        bytes += field.size() + 1;  // a separator or a line end follows each but the last
        lra::fuzz::accepts([&] {
          const auto sequence = lra::tasks::numbers_of_text(field, reader.where());
          LRA_CHECK_LE(sequence.numbers.size(), field.size());
        });
      }
    }
    LRA_CHECK_LE(bytes, input.text().size() + 1);
  });
  return 0;
}
