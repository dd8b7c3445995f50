// A checked shard in memory; views returned by dataset.h point into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/manifest.h"
#include "data/shard_format.h"

namespace lra {

// An lra::Error at `path` for a file of a prepared dataset that contradicts its manifest.
[[noreturn]] void damaged(const std::string& path, const std::string& what,
                          const std::string& expected);
// Throws it unless `found` is `expected`.
void expect_number(const std::string& path, const char* what, uint64_t found, uint64_t expected);
// Throws lra::Error because `what` of the file is newer than this program supports.
[[noreturn]] void refuse_newer(const std::string& path, const char* what, uint64_t found,
                               uint64_t known);

// Pointers into the bytes of the shard, valid as long as these are.
struct ShardView {
  ShardHeader header;
  const int32_t* labels = nullptr;    // [num_examples]
  const uint64_t* offsets = nullptr;  // [num_sequences + 1], rising, in tokens
  const std::byte* tokens = nullptr;  // [num_tokens], token_bytes each
};

// `bytes` must begin at a multiple of 8 and match `info` and `manifest`. Sizes, counts, offsets and
// labels are always checked, the hash when `verify`. Throws lra::Error naming `path`.
ShardView view_shard(std::span<const std::byte> bytes, const std::string& path,
                     const ShardInfo& info, const Manifest& manifest, bool verify);

// The hash of a whole shard that no manifest lists yet. Throws lra::Error naming `path` for bytes
// that are none.
std::string hash_of_shard(std::span<const std::byte> bytes, const std::string& path);

}  // namespace lra
