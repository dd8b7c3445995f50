// manifest.json of a prepared dataset, with the hash that fits, as a forger writes it. What is
// accepted reads the same after it was written.
// Covers: src/data/manifest.cpp
#include "data/manifest.h"

#include "base/hash.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lra;
  Manifest manifest;
  const lra::fuzz::Input input(data, size);
  const std::string body(input.text());
  const std::string hash = lra::to_hex(lra::hash128(body + "\n}"));
  const std::string text = body + ",\n  \"xxh3\": \"" + hash + "\"\n}\n";
  if (!lra::fuzz::accepts([&] { manifest = parse_manifest(text, "manifest.json"); })) return 0;
  for (const auto& [split, shards] : manifest.splits) {
    for (const ShardInfo& shard : shards) LRA_CHECK(shard.file.find('/') == std::string::npos);
  }
  const std::string written = manifest_text(manifest);
  LRA_CHECK(manifest_text(parse_manifest(written, "written")) == written);
  return 0;
}
