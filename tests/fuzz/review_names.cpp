// Names of reviews: the lines of a side file, the entries of an archive.
// Covers: src/tasks/text/review_names.cpp
#include "tasks/text/review_names.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  while (!input.text().empty()) {
    const std::string_view line = input.until('\n');
    lra::tasks::ReviewKey key, again;
    if (!lra::tasks::parse_review_path(line, key)) continue;
    const std::string name = lra::tasks::review_path(key);
    LRA_CHECK(line.ends_with(name));
    LRA_CHECK(lra::tasks::parse_review_path(name, again) && again == key);
  }
  return 0;
}
