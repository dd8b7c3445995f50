// record.json of a run. What is accepted reads the same after it was written.
// Covers: src/records/run_record.cpp src/records/record_json.h src/io/config_json.cpp
// Without: write_record read_record
#include "records/run_record.h"

#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lra::fuzz::Input input(data, size);
  lra::RunRecord record;
  if (!lra::fuzz::accepts(
          [&] { record = lra::parse_record(std::string(input.text()), "record.json"); })) {
    return 0;
  }
  const std::string written = lra::to_json(record);
  LRA_CHECK(lra::to_json(lra::parse_record(written, "written")) == written);
  return 0;
}
