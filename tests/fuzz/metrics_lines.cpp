// metrics.jsonl of a run that goes on.
// Covers: src/records/step_lines.cpp
#include "fuzz_target.h"
#include "records/step_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  const int64_t step = input.byte();
  const auto keeps = [&](std::string_view line) {
    return lra::is_line_until_step(line, step, "metrics.jsonl");
  };
  const std::string kept = lra::kept_lines(input.text(), keeps);
  LRA_CHECK_LE(kept.size(), input.text().size());
  LRA_CHECK(lra::kept_lines(kept, keeps) == kept);
  return 0;
}
