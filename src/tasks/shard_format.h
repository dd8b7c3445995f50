// The header of a shard, shared by its reader and its writer. Layout: see dataset.h.
#pragma once

#include <bit>
#include <cstdint>

namespace lra::tasks {

static_assert(std::endian::native == std::endian::little, "shards are mapped as they are");

inline constexpr uint64_t kShardMagic = 0x4452414853'41524CULL;  // "LRASHARD" in file order
inline constexpr uint32_t kShardVersion = 1;

struct ShardHeader {
  uint64_t magic = kShardMagic;
  uint32_t version = kShardVersion;
  uint32_t token_bytes = 1;
  uint64_t num_examples = 0;
  uint64_t num_sequences = 0;
  uint64_t num_tokens = 0;
  uint64_t reserved[3] = {};  // zero
};
static_assert(sizeof(ShardHeader) == 64);

// Bytes of `num_examples` labels with their padding.
constexpr uint64_t shard_label_bytes(uint64_t num_examples) {
  return (num_examples * 4 + 7) / 8 * 8;
}

// Size of a whole shard. The counts must be small enough not to overflow.
constexpr uint64_t shard_bytes(const ShardHeader& header) {
  return sizeof(ShardHeader) + shard_label_bytes(header.num_examples) +
         (header.num_sequences + 1) * 8 + header.num_tokens * header.token_bytes;
}

}  // namespace lra::tasks
