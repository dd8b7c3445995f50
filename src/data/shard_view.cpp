#include "data/shard_view.h"

#include <array>

#include "base/error.h"
#include "base/hash.h"
#include "io/byte_reader.h"

namespace lra {

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

void refuse_newer(const std::string& path, const char* what, uint64_t found, uint64_t known) {
  throw Error({.where = path,
               .what = std::string("has ") + what + " " + std::to_string(found) +
                       ", which a newer version of lra writes",
               .expected = std::to_string(known) + " or less",
               .advice = "read it with that version, or prepare the dataset again with this one"});
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

// Each count is compared with the size before it is multiplied, so nothing overflows.
void check_size(const ShardHeader& header, uint64_t size, const std::string& path) {
  if (header.magic != kShardMagic) damaged(path, "does not start with LRASHARD", "a shard");
  if (header.version > kShardVersion)
    refuse_newer(path, "format version", header.version, kShardVersion);
  if (header.version != 1) expect_number(path, "format version", header.version, kShardVersion);
  for (const uint64_t word : header.reserved) expect_number(path, "reserved word", word, 0);
  for (const uint64_t count : {header.num_examples, header.num_sequences, header.num_tokens}) {
    if (count > size) damaged(path, "count " + std::to_string(count), "at most the file's size");
  }
  if (header.token_bytes > 4 * kMaxTokenWords) {
    damaged(path, "bytes per token is " + std::to_string(header.token_bytes), "1024 at most");
  }
  expect_number(path, "size in bytes", size, sections_of(header).end);
}

void check_header(const ShardHeader& header, const std::string& path, const ShardInfo& info,
                  const Manifest& manifest) {
  expect_number(path, "bytes per token", header.token_bytes,
                static_cast<uint64_t>(manifest.token_bytes));
  expect_number(path, "number of examples", header.num_examples,
                static_cast<uint64_t>(info.num_examples));
  expect_number(path, "number of tokens", header.num_tokens,
                static_cast<uint64_t>(info.num_tokens));
  expect_number(path, "number of sequences", header.num_sequences,
                header.num_examples * static_cast<uint64_t>(manifest.num_towers));
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

struct SectionBytes {
  std::span<const std::byte> labels, offsets, tokens;
};

// The only check of the gaps is that they are zero.
SectionBytes read_sections(const ShardHeader& header, std::span<const std::byte> bytes,
                           const std::string& path) {
  const ShardSections at = sections_of(header);
  const SectionBytes sections{.labels = bytes.subspan(at.labels, header.num_examples * 4),
                              .offsets = bytes.subspan(at.offsets, (header.num_sequences + 1) * 8),
                              .tokens = bytes.subspan(at.tokens)};
  const auto check_gap = [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      expect_number(path, "a byte between sections", std::to_integer<uint64_t>(bytes[i]), 0);
    }
  };
  check_gap(at.labels + sections.labels.size(), at.offsets);
  check_gap(at.offsets + sections.offsets.size(), at.tokens);
  return sections;
}

}  // namespace

std::string shard_hash(const ShardHeader& header, std::span<const std::byte> labels,
                       std::span<const std::byte> offsets, std::span<const std::byte> tokens) {
  ShardHeader first = header;
  first.version = 1;
  const ShardSections at = sections_of(first);
  const std::array<std::byte, 8> gap{};
  Hasher hasher;
  hasher.append(std::as_bytes(std::span(&first, 1)));
  hasher.append(labels);
  hasher.append(std::span(gap).first(at.offsets - at.labels - labels.size()));
  hasher.append(offsets);
  hasher.append(tokens);
  return to_hex(hasher.digest());
}

std::string hash_of_shard(std::span<const std::byte> bytes, const std::string& path) {
  const ShardHeader header = read_header(bytes, path);
  check_size(header, bytes.size(), path);
  const auto [labels, offsets, tokens] = read_sections(header, bytes, path);
  return shard_hash(header, labels, offsets, tokens);
}

ShardView view_shard(std::span<const std::byte> bytes, const std::string& path,
                     const ShardInfo& info, const Manifest& manifest, bool verify) {
  expect_number(path, "size in bytes", bytes.size(), static_cast<uint64_t>(info.num_bytes));
  ShardView shard;
  shard.header = read_header(bytes, path);
  check_size(shard.header, bytes.size(), path);
  check_header(shard.header, path, info, manifest);
  const auto [labels, offsets, tokens] = read_sections(shard.header, bytes, path);
  if (verify) {
    const std::string hash = shard_hash(shard.header, labels, offsets, tokens);
    if (hash != info.xxh3) damaged(path, "content hash is " + hash, info.xxh3);
  }
  shard.labels = reinterpret_cast<const int32_t*>(labels.data());
  shard.offsets = reinterpret_cast<const uint64_t*>(offsets.data());
  shard.tokens = tokens.data();
  check_content(shard, path);
  return shard;
}

}  // namespace lra
