// A prepared dataset on disk: what the trainer reads, whatever the task.
//
// A folder holds manifest.json and, per split, one or more shards, read through mmap. A shard is a 64-byte
// header, labels (int32), token offsets (uint64, num_sequences + 1, in tokens) and tokens (uint8 or uint16,
// one example after another, without padding). An example has num_towers consecutive sequences.
// Every shard's XXH3-128 stands in the manifest and is checked at open unless told not to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lra::tasks {

// One split. Cheap to copy; the mapped files live as long as any copy.
class Split {
 public:
  struct Shards;  // the mapped files
  Split() = default;
  explicit Split(std::shared_ptr<const Shards> shards);
  // The same examples in the order of `indices` (a held-out part, a small subset).
  Split subset(std::vector<int64_t> indices) const;

  int64_t size() const;
  int32_t label(int64_t example) const;
  // Tokens of one sequence as stored; token_offset of the manifest is already added to each id.
  // Writes at most out.size() ids and returns how many the stored sequence has.
  int64_t read_tokens(int64_t example, int64_t tower, std::span<int32_t> out) const;
  int64_t sequence_length(int64_t example, int64_t tower) const;

 private:
  std::shared_ptr<const Shards> shards_;
  std::shared_ptr<const std::vector<int64_t>> indices_;  // null: all of them
};

struct ShardInfo {
  std::string file;
  int64_t num_examples = 0, num_tokens = 0, num_bytes = 0;
  std::string xxh3;  // 32 hex digits
};

struct Manifest {
  int schema = 1;
  std::string task;
  int64_t task_version = 0;
  std::string source;        // "generated" or "imported"
  std::string source_hash;   // of the generator settings, or of the files read
  int64_t num_towers = 1;
  int64_t token_bytes = 1;   // 1 or 2
  int64_t token_offset = 0;  // added to every stored value to get the id
  std::map<std::string, std::string> settings;             // generator or import settings, as text
  std::map<std::string, std::vector<ShardInfo>> splits;    // "train", "val", "test"
  std::vector<std::string> notes;                          // "sample 17 of train redrawn once: duplicate"
};

class Dataset {
 public:
  // Throws lra::Error when the folder, the manifest or a shard is missing or wrong.
  static Dataset open(const std::string& folder, bool verify = true);
  const Manifest& manifest() const { return manifest_; }
  bool has(const std::string& split) const { return splits_.contains(split); }
  Split split(const std::string& name) const;
  // One hash over the hashes of all shards and the task version: the data's name in run records.
  std::string hash() const;

 private:
  Manifest manifest_;
  std::map<std::string, Split> splits_;
};

// Writes a prepared dataset: into "<folder>.partial", renamed when complete, so that a folder is whole or absent.
// Locked against a second process; refuses a folder that exists.
class DatasetWriter {
 public:
  // `expected_bytes` (0 = unknown) is compared with the free space first.
  DatasetWriter(std::string folder, Manifest manifest, int64_t expected_bytes);
  ~DatasetWriter();
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;

  void begin_split(const std::string& name);
  // One example: num_towers sequences of stored values (ids less token_offset).
  void add(int32_t label, std::span<const std::span<const uint8_t>> sequences);
  void add_note(std::string note);
  // Writes the manifest, syncs, renames. Returns the manifest as written.
  Manifest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lra::tasks
