// JSON behind every record and manifest. What is accepted reads the same after it was written.
// Covers: src/io/json.cpp
// Without: read_json_file json_number
#include "io/json.h"

#include "fuzz_target.h"

namespace {

// Asks for every field as every type.
void read_fields(const lra::Json& json) {
  for (const auto& [key, value] : json.items()) {
    const char* name = key.c_str();
    lra::JsonFields fields(json, "input.json", "section");
    lra::fuzz::accepts([&] { fields.find<bool>(name); });
    lra::fuzz::accepts([&] { fields.find<int64_t>(name); });
    lra::fuzz::accepts([&] { fields.find<uint64_t>(name); });
    lra::fuzz::accepts([&] { fields.get<double>(name); });
    lra::fuzz::accepts([&] { fields.get<std::string>(name); });
    lra::fuzz::accepts([&] { fields.get<std::vector<std::string>>(name); });
    lra::fuzz::accepts([&] { fields.array(name); });
    lra::fuzz::accepts([&] { fields.object(name); });
    lra::fuzz::accepts([&] { fields.find_object(name); });
    lra::fuzz::accepts([&] { fields.get<bool>("absent"); });
    lra::fuzz::accepts([&] { fields.finish(); });
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr lra::JsonLimits kLimits = {.max_bytes = 4000, .max_depth = 16, .max_keys = 40};
  const lra::fuzz::Input input(data, size);
  lra::Json json;
  if (!lra::fuzz::accepts([&] { json = lra::parse_json(input.text(), "input.json", kLimits); })) {
    return 0;
  }
  const std::string written = lra::json_text(json);
  LRA_CHECK(lra::json_text(lra::parse_json(written, "written")) == written);
  lra::fuzz::accepts([&] { lra::JsonFields(json, "input.json"); });
  if (json.is_object()) read_fields(json);
  return 0;
}
