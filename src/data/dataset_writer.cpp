
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "base/text_format.h"
#include "data/dataset.h"
#include "data/new_folder.h"
#include "data/shard_format.h"
#include "data/unfinished_shards.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

// Tokens per shard: large enough that the files are few, small enough to be built in memory.
constexpr size_t kShardTokenBytes = size_t{64} << 20;

// Bytes of the files of a folder; 0 when there is none.
uint64_t bytes_in(const std::string& folder) {
  uint64_t bytes = 0;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const uintmax_t size = entry.file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

struct DatasetWriter::State {
  std::string folder, partial;
  std::string resume_key;  // empty: an interrupted run starts over
  Manifest manifest;
  std::unique_ptr<FileLock> lock;
  bool published = false;

  std::string split;  // empty before the first begin_split
  std::vector<int32_t> labels;
  std::vector<uint64_t> offsets{0};
  std::vector<std::byte> tokens;
  uint64_t num_tokens = 0;

  bool can_resume() const { return !resume_key.empty() && has_marks(partial, resume_key); }

  void flush() {
    if (labels.empty()) return;
    std::vector<ShardInfo>& shards = manifest.splits.at(split);
    ShardInfo info{.file = shard_file_name(split, shards.size()),
                   .num_examples = static_cast<int64_t>(labels.size()),
                   .num_tokens = static_cast<int64_t>(num_tokens),
                   .num_bytes = 0,
                   .xxh3 = ""};
    const ShardHeader header{.token_bytes = static_cast<uint32_t>(manifest.token_bytes),
                             .num_examples = labels.size(),
                             .num_sequences = offsets.size() - 1,
                             .num_tokens = num_tokens};
    const ShardSections at = sections_of(header);
    AtomicFile file(partial + "/" + info.file);
    const auto append_at = [&](uint64_t place, std::span<const std::byte> section) {
      const std::array<std::byte, 64> gap{};
      file.append(std::span(gap).first(place - file.size()));
      file.append(section);
    };
    append_at(0, std::as_bytes(std::span(&header, 1)));
    append_at(at.labels, bytes_of(labels));
    append_at(at.offsets, bytes_of(offsets));
    append_at(at.tokens, tokens);
    info.num_bytes = static_cast<int64_t>(file.size());
    info.xxh3 = shard_hash(header, bytes_of(labels), bytes_of(offsets), tokens);
    file.commit();
    shards.push_back(std::move(info));
    labels.clear();
    offsets.assign(1, 0);
    tokens.clear();
    num_tokens = 0;
  }

  template <typename T>
  bool add(int32_t label, std::span<const std::span<const T>> sequences) {
    LRA_CHECK(!split.empty());
    const auto token_bytes = static_cast<size_t>(manifest.token_bytes);
    LRA_CHECK(sizeof(T) == token_bytes || (sizeof(T) == 4 && token_bytes % 4 == 0));
    LRA_CHECK_EQ(static_cast<int64_t>(sequences.size()), manifest.num_towers);
    LRA_CHECK_GE(label, 0);
    // Never grown by doubling: a shard is the largest thing that an import holds.
    if (tokens.empty()) tokens.reserve(kShardTokenBytes + (size_t{1} << 20));
    labels.push_back(label);
    for (const std::span<const T> sequence : sequences) {
      const std::span<const std::byte> bytes = std::as_bytes(sequence);
      tokens.insert(tokens.end(), bytes.begin(), bytes.end());
      LRA_CHECK_EQ(bytes.size() % token_bytes, 0u);
      num_tokens += bytes.size() / token_bytes;
      offsets.push_back(num_tokens);
    }
    if (tokens.size() < kShardTokenBytes) return false;
    flush();
    return true;
  }
};

namespace {

// A source that lacks a part would pass for data otherwise. Where splits are drawn, a small set may
// leave those for validation and test without an example.
void refuse_empty_splits(const Manifest& manifest, const std::string& folder) {
  const bool drawn = manifest.settings.contains("split_seed");
  for (const auto& [name, shards] : manifest.splits) {
    if (drawn && name != "train") continue;
    int64_t examples = 0;
    for (const ShardInfo& shard : shards) examples += shard.num_examples;
    if (examples > 0) continue;
    throw Error({.where = folder,
                 .what = "the source has no usable example for the split '" + name + "'",
                 .expected = "some in every split",
                 .advice = "is the source complete?"});
  }
}

}  // namespace

DatasetWriter::DatasetWriter(const std::string& folder, Manifest manifest, int64_t expected_bytes,
                             const std::string& resume_key)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.folder = without_trailing_slash(folder);
  state.partial = partial_of(state.folder);
  state.manifest = std::move(manifest);
  if (!resume_key.empty()) {
    state.resume_key = to_hex(hash128(resume_key + "\n" + manifest_text(state.manifest)));
  }
  refuse_existing(state.folder);
  const std::string parent = folder_of(state.folder);
  make_folder(parent);
  // The remains of an interrupted run are either reused or removed.
  const uint64_t free = free_bytes(parent) + bytes_in(state.partial);
  if (expected_bytes > 0 && static_cast<uint64_t>(expected_bytes) > free) {
    throw Error({.where = parent,
                 .what = "only " + human_bytes(free) + " are free",
                 .expected = human_bytes(static_cast<uint64_t>(expected_bytes)),
                 .advice = "free space or choose another --out",
                 .code = ExitCode::kIoError});
  }
  state.lock = std::make_unique<FileLock>(lock_of(state.folder), "the dataset " + state.folder,
                                          FileLock::AtEnd::kRemoved);
  refuse_existing(state.folder);  // another process may have finished it meanwhile
  if (state.can_resume()) {
    remove_unmarked(state.partial);
  } else {
    const int failed = remove_tree(state.partial);
    if (failed) throw io_error(state.partial, "cannot remove what was left", failed);
  }
  make_folder(state.partial);
}

DatasetWriter::DatasetWriter(DatasetWriter&& other) noexcept = default;

DatasetWriter::~DatasetWriter() {
  if (!state_ || state_->published || state_->can_resume()) return;
  remove_tree(state_->partial);  // a destructor has nobody to tell when it cannot
}

std::vector<std::string> DatasetWriter::take_over() {
  State& state = *state_;
  LRA_CHECK(!state.split.empty() && state.labels.empty());
  std::vector<std::string> states;
  for (MarkedShard& shard : read_marks(state.partial, state.resume_key, state.split)) {
    state.manifest.splits.at(state.split).push_back(std::move(shard.info));
    states.push_back(std::move(shard.state));
  }
  return states;
}

void DatasetWriter::mark(std::string producer) {
  State& state = *state_;
  LRA_CHECK(!state.resume_key.empty() && state.labels.empty());
  const ShardInfo& last = state.manifest.splits.at(state.split).back();
  write_mark(state.partial, state.resume_key, {last, std::move(producer)});
}

void DatasetWriter::begin_split(const std::string& name) {
  state_->flush();
  LRA_CHECK(name == "train" || name == "val" || name == "test");
  LRA_CHECK(!state_->manifest.splits.contains(name));
  state_->manifest.splits[name];
  state_->split = name;
}

bool DatasetWriter::add(int32_t label, std::span<const std::span<const uint8_t>> sequences) {
  return state_->add(label, sequences);
}

bool DatasetWriter::add(int32_t label, std::span<const std::span<const uint16_t>> sequences) {
  return state_->add(label, sequences);
}

bool DatasetWriter::add(int32_t label, std::span<const std::span<const uint32_t>> sequences) {
  return state_->add(label, sequences);
}

bool DatasetWriter::add(int32_t label, std::span<const uint8_t> sequence) {
  return state_->add(label, std::span<const std::span<const uint8_t>>(&sequence, 1));
}

void DatasetWriter::add_side_file(const std::string& name, std::string_view content) {
  LRA_CHECK(is_plain_file_name(name));
  write_file_atomically(state_->partial + "/" + name, content);
  state_->manifest.side_files[name] = {.num_bytes = static_cast<int64_t>(content.size()),
                                       .xxh3 = to_hex(hash128(content))};
}

Manifest& DatasetWriter::manifest() { return state_->manifest; }

Manifest DatasetWriter::complete() {
  State& state = *state_;
  state.flush();
  if (state.manifest.source == "imported") refuse_empty_splits(state.manifest, state.folder);
  const std::string manifest = manifest_text(state.manifest);
  if (manifest.size() > kMaxManifestBytes) {
    throw Error(
        {.where = state.folder + "/" + kManifestFile,
         .what = "would have " + thousands(static_cast<int64_t>(manifest.size())) + " bytes",
         .expected = "at most " + thousands(static_cast<int64_t>(kMaxManifestBytes)),
         .advice = "too many examples were left out or drawn again"});
  }
  write_file_atomically(state.partial + "/" + kManifestFile, manifest);
  if (!state.resume_key.empty()) remove_unlisted(state.partial, state.manifest);
  return state.manifest;
}

const std::string& DatasetWriter::partial_folder() const { return state_->partial; }

void DatasetWriter::publish() {
  State& state = *state_;
  LRA_CHECK(!state.published);
  rename_new(state.partial, state.folder);
  state.published = true;
  sync_folder(folder_of(state.folder));
  // The marks are removed only now: a kill before the new name is durable must not lose the shards
  // that they certify.
  if (!state.resume_key.empty()) remove_marks(state.folder);
}

Manifest DatasetWriter::finish() {
  Manifest manifest = complete();
  publish();
  return manifest;
}

}  // namespace lra
