#include "tasks/shard_view.h"

#include "base/error.h"
#include "base/hash.h"
#include "io/byte_reader.h"

namespace lra::tasks {

void damaged(const std::string& path, const std::string& what, const std::string& expected) {
  throw Error({.where = path,
               .what = what,
               .expected = expected,
               .advice = "the file is damaged: prepare the dataset again"});
}

void expect_number(const std::string& path, const char* what, uint64_t found, uint64_t expected) {
  if (found == expected) return;
  damaged(path, std::string(what) + " is " + std::to_string(found), std::to_string(expected));
}

namespace {

ShardHeader read_header(std::span<const std::byte> bytes, const std::string& path) {
  ByteReader reader(bytes, path);
  ShardHeader header;
  header.magic = reader.u64("magic number");
  header.version = reader.u32("format version");
  header.token_bytes = reader.u32("bytes per token");
  header.num_examples = reader.u64("number of examples");
  header.num_sequences = reader.u64("number of sequences");
  header.num_tokens = reader.u64("number of tokens");
  for (uint64_t& word : header.reserved) word = reader.u64("reserved word");
  return header;
}

void check_header(const ShardHeader& header, uint64_t size, const std::string& path,
                  const ShardInfo& info, const Manifest& manifest) {
  if (header.magic != kShardMagic) damaged(path, "does not start with LRASHARD", "a shard");
  expect_number(path, "format version", header.version, kShardVersion);
  expect_number(path, "bytes per token", header.token_bytes,
                static_cast<uint64_t>(manifest.token_bytes));
  expect_number(path, "number of examples", header.num_examples,
                static_cast<uint64_t>(info.num_examples));
  expect_number(path, "number of tokens", header.num_tokens,
                static_cast<uint64_t>(info.num_tokens));
  for (const uint64_t word : header.reserved) expect_number(path, "reserved word", word, 0);
  // Each count is compared with the size before it is multiplied, so nothing overflows.
  for (const uint64_t count : {header.num_examples, header.num_sequences, header.num_tokens}) {
    if (count > size) damaged(path, "count " + std::to_string(count), "at most the file's size");
  }
  expect_number(path, "number of sequences", header.num_sequences,
                header.num_examples * static_cast<uint64_t>(manifest.num_towers));
  expect_number(path, "size in bytes", size, shard_bytes(header));
}

void check_content(const ShardView& shard, const std::string& path) {
  const uint64_t num_sequences = shard.header.num_sequences;
  expect_number(path, "first offset", shard.offsets[0], 0);
  expect_number(path, "last offset", shard.offsets[num_sequences], shard.header.num_tokens);
  for (uint64_t i = 0; i < num_sequences; ++i) {
    if (shard.offsets[i] > shard.offsets[i + 1]) {
      damaged(path, "offset of sequence " + std::to_string(i + 1) + " goes back",
              "offsets in rising order");
    }
  }
  for (uint64_t i = 0; i < shard.header.num_examples; ++i) {
    if (shard.labels[i] < 0) {
      damaged(path, "label of example " + std::to_string(i) + " is negative", "0 or more");
    }
  }
}

}  // namespace

ShardView view_shard(std::span<const std::byte> bytes, const std::string& path,
                     const ShardInfo& info, const Manifest& manifest, bool verify) {
  expect_number(path, "size in bytes", bytes.size(), static_cast<uint64_t>(info.num_bytes));
  ShardView shard;
  shard.header = read_header(bytes, path);
  check_header(shard.header, bytes.size(), path, info, manifest);
  if (verify) {
    const std::string hash = to_hex(hash128(bytes));
    if (hash != info.xxh3) damaged(path, "content hash is " + hash, info.xxh3);
  }
  const std::byte* position = bytes.data() + sizeof(ShardHeader);
  shard.labels = reinterpret_cast<const int32_t*>(position);
  position += shard_label_bytes(shard.header.num_examples);
  shard.offsets = reinterpret_cast<const uint64_t*>(position);
  shard.tokens = position + (shard.header.num_sequences + 1) * 8;
  check_content(shard, path);
  return shard;
}

}  // namespace lra::tasks
