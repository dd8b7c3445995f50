// manifest.json of a prepared dataset: what its files are and where they come from.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check_finding.h"

namespace lra {

inline constexpr int kManifestSchema = 4;
inline constexpr int64_t kMaxTokenWords = 4096;  // channels of a position
inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr std::array<const char*, 3> kSplitNames = {"train", "val", "test"};
inline constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;  // of the file

struct ShardInfo {
  std::string file;
  int64_t num_examples = 0, num_tokens = 0, num_bytes = 0;
  std::string xxh3;  // 32 hex digits
};

void fields(auto& f, ShardInfo& shard) {  // for io/struct_json.h
  f("file", shard.file);
  f("num_examples", shard.num_examples);
  f("num_tokens", shard.num_tokens);
  f("num_bytes", shard.num_bytes);
  f("xxh3", shard.xxh3);
}

// A file next to the shards that a task needs to export its data (names of reviews).
struct SideFileInfo {
  int64_t num_bytes = 0;
  std::string xxh3;
};

// Accuracies of trivial classifiers on the test split, from 0 to 1, in the task's order.
struct StoredBaselines {
  // Settings that they depend on: the length that the task read, and the examples of its splits.
  int64_t length = 0, num_train = 0, num_test = 0;
  std::vector<std::pair<std::string, double>> accuracies = {};
};

struct Manifest {
  std::string task;
  int64_t task_version = 0;
  std::string source;                           // "generated" or "imported"
  std::string source_hash;                      // of the generator settings, or of the files read
  int64_t num_towers = 1;                       // 1 or 2
  int64_t token_bytes = 1;                      // 1, 2, or 4 for each of up to 4,096 words
  int64_t token_offset = 0;                     // added to every stored value to get the id
  std::map<std::string, std::string> settings;  // generator or import settings, as text
  std::map<std::string, std::vector<ShardInfo>> splits;  // "train", "val", "test"
  std::map<std::string, SideFileInfo> side_files;        // by file name
  std::vector<std::string> notes;  // "sample 17 of train drawn again once: duplicate"
  // Findings of the checks of imported data (checks/check_table.h), and its baselines. Absent in
  // manifests before schema 4, whose data is checked when it is used, and of generated data. The
  // doubts that schema 3 had in their place are left out.
  std::optional<std::vector<CheckFinding>> data_checks = {};
  std::optional<StoredBaselines> baselines = {};
};

// Hash of the settings of generated data, for source_hash: of `begin` and the lines KEY=VALUE.
std::string hash_of_settings(const std::map<std::string, std::string>& settings,
                             std::string begin = "");

// JSON that ends with its own XXH3-128, over the text without that field.
std::string manifest_text(const Manifest& manifest);

// Strict: unknown, missing or ill-typed fields, names that are not plain file names, unknown
// schemas, and a text that does not match its hash, to the byte, are an lra::Error that names
// `name`. The counts of shards are compared with the shards themselves.
Manifest parse_manifest(std::string_view text, const std::string& name);

// A name that can be in a folder and leads nowhere else: letters, digits, '.', '_', '-', not
// starting with a dot, at most 100 characters.
bool is_plain_file_name(std::string_view name);

}  // namespace lra
