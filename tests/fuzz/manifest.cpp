// manifest.json of a prepared dataset. What is accepted reads the same after it was written.
// Covers: src/tasks/manifest.cpp
#include "tasks/manifest.h"

#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lra::tasks;
  Manifest manifest;
  const lra::fuzz::Input input(data, size);
  if (!lra::fuzz::accepts([&] { manifest = parse_manifest(input.text(), "manifest.json"); })) {
    return 0;
  }
  for (const auto& [split, shards] : manifest.splits) {
    for (const ShardInfo& shard : shards) LRA_CHECK(shard.file.find('/') == std::string::npos);
  }
  const std::string written = manifest_text(manifest);
  LRA_CHECK(manifest_text(parse_manifest(written, "written")) == written);
  return 0;
}
