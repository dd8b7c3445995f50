// Remains of an interrupted DatasetWriter: complete shards, each with a mark next to it,
// SHARD.mark, that describes the content and the state from which its producer continues.
#pragma once

#include <string>
#include <vector>

#include "data/manifest.h"

namespace lra {

struct MarkedShard {
  ShardInfo info;
  std::string state;  // of the producer, in its own format
};

// "train-003.shard"
std::string shard_file_name(const std::string& split, size_t number);

// The mark of a shard in `folder`, written atomically. `key` identifies the dataset being made:
// marks with another key are ignored. Throws lra::Error (exit code 74).
void write_mark(const std::string& folder, const std::string& key, const MarkedShard& shard);

// The first shards of a split as far as they are marked, of this key, and still have the bytes
// that they were written with. A damaged mark or shard ends the list.
std::vector<MarkedShard> read_marks(const std::string& folder, const std::string& key,
                                    const std::string& split);

// True if the first shard of any split can be reused.
bool has_marks(const std::string& folder, const std::string& key);

// Removes every file that is neither a mark nor marked, that is, unfinished ones.
void remove_unmarked(const std::string& folder);
// Removes shards that the manifest does not name, with their marks: of an earlier, longer attempt.
void remove_unlisted(const std::string& folder, const Manifest& manifest);
void remove_marks(const std::string& folder);

}  // namespace lra
