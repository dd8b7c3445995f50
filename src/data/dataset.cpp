#include "data/dataset.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/permutation.h"
#include "base/rng.h"
#include "data/files.h"
#include "data/shard_view.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"

namespace lra {

// One mapped shard.
struct MappedShard {
  MappedFile file;
  ShardView view;
  int64_t first_example = 0;  // index of its first example in the split
};

namespace {

constexpr uint64_t kMaxSideFileBytes = uint64_t{1} << 30;

// Side files are read whole when they are needed; here only their hash is compared.
void verify_side_files(const std::string& folder, const Manifest& manifest) {
  for (const auto& [name, info] : manifest.side_files) {
    const MappedFile file(folder + "/" + name);
    expect_number(file.path(), "size in bytes", file.bytes().size(),
                  static_cast<uint64_t>(info.num_bytes));
    const std::string hash = to_hex(hash128(file.bytes()));
    if (hash != info.xxh3) damaged(file.path(), "content hash is " + hash, info.xxh3);
  }
}

MappedShard open_shard(const std::string& folder, const ShardInfo& info, const Manifest& manifest,
                       bool verify) {
  MappedShard shard{.file = MappedFile(folder + "/" + info.file), .view = {}};
  shard.view = view_shard(shard.file.bytes(), shard.file.path(), info, manifest, verify);
  return shard;
}

// The order of sequence `number` of a split, whose tokens have `words` each.
void shuffle(std::span<int32_t> tokens, size_t words, int64_t number) {
  if (tokens.empty()) return;
  const std::vector<int32_t> before(tokens.begin(), tokens.end());
  const Permutation order(before.size() / words,
                          derive_key(0, RandomUse::kTokenOrder, static_cast<uint32_t>(number),
                                     static_cast<uint32_t>(number >> 32)));
  for (size_t i = 0; i < before.size() / words; ++i) {
    std::copy_n(&before[words * order(i)], words, &tokens[words * i]);
  }
}

}  // namespace

struct Split::Shards {
  std::vector<MappedShard> shards;  // in the order of the manifest
  int64_t num_examples = 0, num_towers = 1, token_bytes = 1;
  int32_t token_offset = 0;

  struct Place {
    const MappedShard* shard;
    uint64_t example;  // within the shard
  };
  Place find(int64_t example) const {
    const auto after = std::upper_bound(
        shards.begin(), shards.end(), example,
        [](int64_t index, const MappedShard& shard) { return index < shard.first_example; });
    const MappedShard& shard = *(after - 1);
    return {&shard, static_cast<uint64_t>(example - shard.first_example)};
  }

  struct Sequence {
    const std::byte* data;
    uint64_t length;  // in tokens
  };
  Sequence sequence(int64_t example, int64_t tower) const {
    LRA_CHECK_GE(tower, 0);
    LRA_CHECK_LT(tower, num_towers);
    const Place place = find(example);
    const uint64_t index =
        place.example * static_cast<uint64_t>(num_towers) + static_cast<uint64_t>(tower);
    const uint64_t begin = place.shard->view.offsets[index];
    return {place.shard->view.tokens + begin * static_cast<uint64_t>(token_bytes),
            place.shard->view.offsets[index + 1] - begin};
  }
};

Split::Split(std::shared_ptr<const Shards> shards) : shards_(std::move(shards)) {}

Split Split::subset(std::vector<int64_t> indices) const {
  for (int64_t& index : indices) index = base_index(index);
  Split part = *this;
  part.indices_ = std::make_shared<const std::vector<int64_t>>(std::move(indices));
  return part;
}

Split Split::with_shuffled_tokens() const {
  Split other = *this;
  other.shuffled_ = true;
  return other;
}

int64_t Split::base_index(int64_t example) const {
  LRA_CHECK_GE(example, 0);
  LRA_CHECK_LT(example, size());
  return indices_ ? (*indices_)[static_cast<size_t>(example)] : example;
}

int64_t Split::size() const {
  if (indices_) return static_cast<int64_t>(indices_->size());
  return shards_ ? shards_->num_examples : 0;
}

int32_t Split::label(int64_t example) const {
  const Shards::Place place = shards_->find(base_index(example));
  return place.shard->view.labels[place.example];
}

int64_t Split::read_tokens(int64_t example, int64_t tower, std::span<int32_t> out) const {
  const Shards::Sequence sequence = shards_->sequence(base_index(example), tower);
  const auto words = static_cast<size_t>(words_per_token());
  const size_t count = std::min<size_t>(out.size(), sequence.length * words);
  const int32_t offset = shards_->token_offset;
  if (shards_->token_bytes == 1) {
    const auto* values = reinterpret_cast<const uint8_t*>(sequence.data);
    // At -O2 the compiler leaves this loop, the hottest of a loader, without vectors.
#pragma omp simd
    for (size_t i = 0; i < count; ++i) out[i] = values[i] + offset;
  } else if (shards_->token_bytes == 2) {
    const auto* values = reinterpret_cast<const uint16_t*>(sequence.data);
    for (size_t i = 0; i < count; ++i) out[i] = values[i] + offset;
  } else {
    if (count > 0) std::memcpy(out.data(), sequence.data, 4 * count);
    for (size_t i = 0; offset != 0 && i < count; ++i) {
      out[i] = static_cast<int32_t>(static_cast<uint32_t>(out[i]) + static_cast<uint32_t>(offset));
    }
  }
  if (shuffled_) {
    shuffle(out.first(count), words, shards_->num_towers * base_index(example) + tower);
  }
  return static_cast<int64_t>(sequence.length);
}

std::vector<int32_t> Split::all_tokens(int64_t example, int64_t tower) const {
  std::vector<int32_t> words(
      static_cast<size_t>(sequence_length(example, tower) * words_per_token()));
  read_tokens(example, tower, words);
  return words;
}

int64_t Split::words_per_token() const {
  return shards_ ? std::max<int64_t>(1, shards_->token_bytes / 4) : 1;
}

int64_t Split::sequence_length(int64_t example, int64_t tower) const {
  return static_cast<int64_t>(shards_->sequence(base_index(example), tower).length);
}

int64_t Split::token_bytes() const { return shards_ ? shards_->token_bytes : 1; }

int32_t Split::word(int64_t example, int64_t tower, int64_t place) const {
  LRA_CHECK(!shuffled_);
  const Shards::Sequence sequence = shards_->sequence(base_index(example), tower);
  const auto index = static_cast<size_t>(place);
  LRA_CHECK_LT(index, sequence.length * static_cast<size_t>(words_per_token()));
  const auto* const data = reinterpret_cast<const std::byte*>(sequence.data);
  const size_t bytes = std::min<size_t>(4, static_cast<size_t>(shards_->token_bytes));
  uint32_t value = 0;
  std::memcpy(&value, data + bytes * index, bytes);
  return static_cast<int32_t>(value + static_cast<uint32_t>(shards_->token_offset));
}

void Split::release(int64_t begin, int64_t end) const {
  if (indices_) return;
  while (begin < end) {
    const MappedShard& shard = *shards_->find(begin).shard;
    const int64_t stop =
        std::min(end, shard.first_example + static_cast<int64_t>(shard.view.header.num_examples));
    const std::byte* const first = shards_->sequence(begin, 0).data;
    const Shards::Sequence last = shards_->sequence(stop - 1, shards_->num_towers - 1);
    MappedFile::release(
        {first, last.data + last.length * static_cast<uint64_t>(shards_->token_bytes)});
    begin = stop;
  }
}

std::span<const uint8_t> Split::stored_bytes(int64_t example, int64_t tower) const {
  LRA_CHECK_EQ(shards_->token_bytes, 1);
  const Shards::Sequence sequence = shards_->sequence(base_index(example), tower);
  return {reinterpret_cast<const uint8_t*>(sequence.data), sequence.length};
}

Dataset Dataset::open(const std::string& folder, bool verify) {
  const std::string manifest_path = folder + "/" + kManifestFile;
  if (!is_file(manifest_path)) {
    throw Error({.where = folder,
                 .what = "is not a prepared dataset",
                 .expected = std::string("a folder with ") + kManifestFile,
                 .advice = "make one with 'lra data make' or 'lra data import'"});
  }
  Dataset dataset;
  dataset.folder_ = folder;
  dataset.manifest_ = parse_manifest(read_file(manifest_path, kMaxManifestBytes), manifest_path);
  const Manifest& manifest = dataset.manifest_;
  if (verify) verify_side_files(folder, manifest);
  for (const auto& [name, listed] : manifest.splits) {
    const std::vector<ShardInfo>& infos = listed;  // lambdas cannot capture a structured binding
    std::vector<std::optional<MappedShard>> opened(infos.size());
    parallel_for_each(static_cast<int64_t>(infos.size()), [&](int64_t i) {
      const auto index = static_cast<size_t>(i);
      opened[index].emplace(open_shard(folder, infos[index], manifest, verify));
    });
    auto shards = std::make_shared<Split::Shards>();
    shards->num_towers = manifest.num_towers;
    shards->token_bytes = manifest.token_bytes;
    shards->token_offset = static_cast<int32_t>(manifest.token_offset);
    for (std::optional<MappedShard>& shard : opened) {
      shard->first_example = shards->num_examples;
      shards->num_examples += static_cast<int64_t>(shard->view.header.num_examples);
      shards->shards.push_back(std::move(*shard));
    }
    dataset.splits_.emplace(name, Split(std::move(shards)));
  }
  return dataset;
}

Split Dataset::split(const std::string& name) const {
  const auto found = splits_.find(name);
  if (found != splits_.end()) return found->second;
  std::string known;
  for (const auto& [split, unused] : splits_) known += (known.empty() ? "" : ", ") + split;
  throw Error(
      {.where = folder_, .what = "has no split '" + name + "'", .expected = "one of: " + known});
}

std::string Dataset::hash() const {
  Hasher hasher;
  const auto add = [&](const std::string& text) { hasher.append(text + "\n"); };
  add(manifest_.task);
  for (const int64_t number : {manifest_.task_version, manifest_.num_towers, manifest_.token_bytes,
                               manifest_.token_offset}) {
    add(std::to_string(number));
  }
  for (const auto& [name, shards] : manifest_.splits) {
    add(name);
    for (const ShardInfo& shard : shards) add(shard.xxh3);
  }
  return to_hex(hasher.digest());
}

std::string Dataset::read_side_file(const std::string& name) const {
  const auto found = manifest_.side_files.find(name);
  const std::string path = folder_ + "/" + name;
  if (found == manifest_.side_files.end()) {
    throw Error({.where = path,
                 .what = "the dataset has no such file",
                 .advice = "prepare the dataset again"});
  }
  std::string content = read_file(path, kMaxSideFileBytes);
  const std::string hash = to_hex(hash128(content));
  if (hash != found->second.xxh3) damaged(path, "content hash is " + hash, found->second.xxh3);
  return content;
}

}  // namespace lra
