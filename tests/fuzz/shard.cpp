// Shards of prepared datasets: whatever the file and its manifest say, what is handed out lies
// within the file.
// Covers: src/data/shard_view.cpp src/io/byte_reader.cpp
// Without: expect_end f32 f64 ByteReader::text
#include <vector>

#include "base/hash.h"
#include "data/shard_view.h"
#include "fuzz_target.h"

namespace {

using namespace lra;

// The entry of the shard in a dataset's manifest: the content of its own header, or something else.
ShardInfo info_of(std::span<const std::byte> bytes, uint8_t choice) {
  const auto number_at = [&](size_t at) {
    int64_t value = 0;
    for (size_t i = 0; i < 8 && at + i < bytes.size(); ++i) {
      value |= static_cast<int64_t>(std::to_integer<uint64_t>(bytes[at + i]) << (8 * i));
    }
    return value;
  };
  std::string hash;
  lra::fuzz::accepts([&] { hash = lra::hash_of_shard(bytes, "train.shard"); });
  return {.file = "train.shard",
          .num_examples = choice & 4 ? 1 : number_at(16),
          .num_tokens = choice & 8 ? 1 : number_at(32),
          .num_bytes = choice & 16 ? 64 : static_cast<int64_t>(bytes.size()),
          .xxh3 = choice & 32 ? std::string(32, '0') : hash};
}

uint64_t sum_of(const ShardView& shard) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < shard.header.num_examples; ++i) {
    LRA_CHECK_GE(shard.labels[i], 0);
    sum += static_cast<uint64_t>(shard.labels[i]);
  }
  for (uint64_t i = 0; i < shard.header.num_sequences; ++i) {
    const uint64_t begin = shard.offsets[i] * shard.header.token_bytes,
                   end = shard.offsets[i + 1] * shard.header.token_bytes;
    for (uint64_t k = begin; k < end; ++k) sum += std::to_integer<uint64_t>(shard.tokens[k]);
  }
  return sum;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  const uint8_t choice = input.byte();
  // A copy: shards are aligned, and reading past the end of one is seen.
  const std::vector<std::byte> bytes(input.bytes().begin(), input.bytes().end());
  Manifest manifest;
  manifest.num_towers = choice & 1 ? 2 : 1;
  manifest.token_bytes = choice & 2 ? 2 : 1;
  uint64_t sum = 0;
  lra::fuzz::accepts([&] {
    sum = sum_of(view_shard(bytes, "train.shard", info_of(bytes, choice), manifest, true));
  });
  // The check keeps the sum from being optimized away.
  LRA_CHECK(sum < uint64_t{1} << 60);
  return 0;
}
