// manifest.json of a prepared dataset: what its files are and where they come from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lra {

inline constexpr int kManifestSchema = 3;
inline constexpr int64_t kMaxTokenWords = 4096;  // channels of a position
inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;  // of the file

struct ShardInfo {
  std::string file;
  int64_t num_examples = 0, num_tokens = 0, num_bytes = 0;
  std::string xxh3;  // 32 hex digits
};

// A file next to the shards that a task needs to export its data (names of reviews).
struct SideFileInfo {
  int64_t num_bytes = 0;
  std::string xxh3;
};

struct Manifest {
  std::string task;
  int64_t task_version = 0;
  std::string source;                           // "generated" or "imported"
  std::string source_hash;                      // of the generator settings, or of the files read
  int64_t num_towers = 1;                       // 1 or 2
  int64_t token_bytes = 1;                      // 1, 2, or 4 for each of up to 256 words
  int64_t token_offset = 0;                     // added to every stored value to get the id
  std::map<std::string, std::string> settings;  // generator or import settings, as text
  std::map<std::string, std::vector<ShardInfo>> splits;  // "train", "val", "test"
  std::map<std::string, SideFileInfo> side_files;        // by file name
  std::vector<std::string> notes;  // "sample 17 of train drawn again once: duplicate"
  // Reasons to doubt that imported examples are what they seem (split_checks.h). Absent while they
  // are not judged: in manifests of schema 2, and of generated data.
  std::optional<std::vector<std::string>> doubts = {};
};

// JSON that ends with its own XXH3-128, over the text without that field.
std::string manifest_text(const Manifest& manifest);

// Strict: unknown, missing or ill-typed fields, names that are not plain file names, negative
// counts, unknown schemas, and a text that is not what manifest_text() wrote, to the byte, are an
// lra::Error that names `name`.
Manifest parse_manifest(std::string_view text, const std::string& name);

// A name that can be in a folder and leads nowhere else: letters, digits, '.', '_', '-', not
// starting with a dot, at most 100 characters.
bool is_plain_file_name(std::string_view name);

}  // namespace lra
