// A prepared dataset on disk, which the trainer reads for every task.
//
// A folder holds manifest.json and, per split, shards that are read through mmap. A shard, all
// numbers little-endian, each section at a multiple of 64 bytes: a header (shard_format.h); labels
// (int32, one per example); offsets (uint64, num_sequences + 1, in tokens, the first 0); tokens
// (one sequence after another, without padding). A token has token_bytes: 1 or 2 for an unsigned
// integer, or 4 for each of its words: a wider integer, or the float32 channels of a position. An
// example has num_towers consecutive sequences. docs/data_format.md defines the byte layout. The
// XXH3-128 of every shard and side file is in the manifest and is checked at open unless switched
// off; the manifest's own hash, counts, sizes and offsets are always checked, so a damaged file
// causes an lra::Error.
//
// Goals of the room `data`: one format for all tasks, mapped instead of loaded, whose corruption is
// noticed before use. Non-goals: to know what examples mean, to be an exchange format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/manifest.h"

namespace lra {

// One split. Cheap to copy; the mapped files live as long as any copy. Thread safe.
class Split {
 public:
  struct Shards;  // the mapped files
  Split() = default;
  explicit Split(std::shared_ptr<const Shards> shards);
  // The same examples in the order of `indices` (a held-out part, a small subset).
  Split subset(std::vector<int64_t> indices) const;
  // The same examples, with the tokens of every sequence in a fixed random order of its own; a
  // sequence is cut before it is shuffled.
  Split with_shuffled_tokens() const;

  int64_t size() const;
  int32_t label(int64_t example) const;
  // Tokens of one sequence as ids: token_offset of the manifest is already added to each. Writes at
  // most out.size() ids and returns how many the stored sequence has. Of tokens of several words
  // each word takes a place of `out`, unchanged; the bits of a float32 are one.
  int64_t read_tokens(int64_t example, int64_t tower, std::span<int32_t> out) const;
  // All of one sequence, as read_tokens() gives it.
  std::vector<int32_t> all_tokens(int64_t example, int64_t tower = 0) const;
  int64_t sequence_length(int64_t example, int64_t tower) const;
  int64_t words_per_token() const;  // places of read_tokens that each token takes
  int64_t token_bytes() const;      // of a stored token
  // The number that read_tokens writes at one place, which must be within the sequence.
  int32_t word(int64_t example, int64_t tower, int64_t place) const;
  // The stored values of one sequence in the order of the file, not copied, token_offset not added;
  // token_bytes must be 1.
  std::span<const uint8_t> stored_bytes(int64_t example, int64_t tower = 0) const;
  // Takes the tokens of the examples from `begin` to before `end`, which were read and are not
  // needed soon, out of the memory of the process. Does nothing for a subset.
  void release(int64_t begin, int64_t end) const;

 private:
  int64_t base_index(int64_t example) const;

  std::shared_ptr<const Shards> shards_;
  std::shared_ptr<const std::vector<int64_t>> indices_;  // null: all of them
  bool shuffled_ = false;
};

class Dataset {
 public:
  // Throws lra::Error when the folder, the manifest or a shard is missing or wrong.
  static Dataset open(const std::string& folder, bool verify = true);
  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  bool has(const std::string& split) const { return splits_.contains(split); }
  // Throws lra::Error when there is no such split.
  Split split(const std::string& name) const;
  // One hash over the hashes of all shards and the task version: the data's name in run records.
  // 32 hex digits.
  std::string hash() const;
  // The content of a side file, hash checked. Throws lra::Error when there is none.
  std::string read_side_file(const std::string& name) const;

 private:
  std::string folder_;
  Manifest manifest_;
  std::map<std::string, Split> splits_;
};

// Writes a prepared dataset: into partial_of(folder) (new_folder.h), renamed when complete, so that
// a folder is whole or absent. lock_of(folder) keeps a second process out while writing. The same
// calls give the same bytes.
//
// Files of an interrupted run are removed, unless `resume_key` identifies its content: then
// complete marked shards are taken over, split by split.
class DatasetWriter {
 public:
  // `expected_bytes` (0 = unknown) is compared with the free space first. Throws lra::Error when
  // the folder exists, another process writes it, or the space does not suffice. `resume_key`
  // represents everything that determines the examples and is not in `manifest`; empty: never
  // resumed.
  DatasetWriter(const std::string& folder, Manifest manifest, int64_t expected_bytes,
                const std::string& resume_key = "");
  // Removes the partial folder unless it was published or can be taken over.
  ~DatasetWriter();
  DatasetWriter(DatasetWriter&& other) noexcept;
  DatasetWriter& operator=(DatasetWriter&&) = delete;

  void begin_split(const std::string& name);
  // Right after begin_split: takes over the split's marked shards of an interrupted run and returns
  // the argument of mark() for each; add examples from there on.
  std::vector<std::string> take_over();
  // One example: num_towers sequences of stored values (ids less token_offset), of token_bytes
  // each. True when it completed a shard, which is now on disk.
  bool add(int32_t label, std::span<const std::span<const uint8_t>> sequences);
  bool add(int32_t label, std::span<const std::span<const uint16_t>> sequences);
  bool add(int32_t label, std::span<const std::span<const uint32_t>> sequences);  // all words
  // The same for one tower.
  bool add(int32_t label, std::span<const uint8_t> sequence);
  // Right after add() returned true: an interrupted run may continue after that shard. `producer`
  // is returned by take_over(), UTF-8.
  void mark(std::string producer);
  void add_side_file(const std::string& name, std::string_view content);
  // The manifest that will be written, for notes and for what is known only at the end: settings,
  // the hash of the sources.
  Manifest& manifest();
  // Writes the manifest: partial_folder() is a dataset from now on. Returns the manifest as
  // written. Throws lra::Error if an import leaves a split without an example; if splits are drawn
  // ("split_seed"), only for train.
  Manifest complete();
  const std::string& partial_folder() const;
  // After complete(): gives the dataset its name, durably.
  void publish();
  // Both.
  Manifest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lra
