// The header of a shard, shared by its reader and its writer. Layout: see dataset.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lra {

static_assert(std::endian::native == std::endian::little, "shards are mapped as they are");

inline constexpr uint64_t kShardMagic = 0x4452414853'41524CULL;  // "LRASHARD" in file order
inline constexpr uint32_t kShardVersion = 2;  // 1 differs only in the alignment of sections

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

// Offsets of the sections of a shard and of the end of the file, in bytes.
struct ShardSections {
  uint64_t labels, offsets, tokens, end;
};

// The counts must be small enough not to overflow. Sections begin at multiples of 64 bytes, in
// version 1 of 8; the gaps between them are zero.
constexpr ShardSections sections_of(const ShardHeader& header) {
  const uint64_t unit = header.version == 1 ? 8 : 64;
  const auto aligned = [unit](uint64_t at) { return (at + unit - 1) / unit * unit; };
  ShardSections at{.labels = sizeof(ShardHeader), .offsets = 0, .tokens = 0, .end = 0};
  at.offsets = aligned(at.labels + header.num_examples * 4);
  at.tokens = aligned(at.offsets + (header.num_sequences + 1) * 8);
  at.end = at.tokens + header.num_tokens * header.token_bytes;
  return at;
}

// XXH3-128 of the sections, 32 hex digits: of the bytes that they have in version 1, so that a
// dataset keeps its name. `labels`, `offsets` and `tokens` are the sections without gaps.
std::string shard_hash(const ShardHeader& header, std::span<const std::byte> labels,
                       std::span<const std::byte> offsets, std::span<const std::byte> tokens);

}  // namespace lra
