// metrics.jsonl of a run that goes on.
// Covers: src/base/step_lines.cpp
#include "base/step_lines.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  const int64_t step = input.byte();
  const std::string kept = lra::lines_until_step(input.text(), step, "metrics.jsonl");
  LRA_CHECK_LE(kept.size(), input.text().size());
  LRA_CHECK(lra::lines_until_step(kept, step, "metrics.jsonl") == kept);
  return 0;
}
