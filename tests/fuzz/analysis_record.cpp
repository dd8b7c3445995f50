// RUN/analysis/KIND.json. What is accepted reads the same after it was written.
// Covers: src/records/analysis_record.cpp src/records/record_json.h src/io/struct_json.h
// Without: write_analysis read_analysis
#include "records/analysis_record.h"

#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lra::fuzz::Input input(data, size);
  lra::AnalysisRecord record;
  if (!lra::fuzz::accepts(
          [&] { record = lra::parse_analysis(std::string(input.text()), "span.json"); })) {
    return 0;
  }
  const std::string written = lra::to_json(record);
  LRA_CHECK(lra::to_json(lra::parse_analysis(written, "written")) == written);
  return 0;
}
