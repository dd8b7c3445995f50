#include "data/unfinished_shards.h"

#include <filesystem>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "data/files.h"
#include "data/shard_view.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "io/struct_json.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarkEnd = ".mark";
constexpr uint64_t kMaxMarkBytes = uint64_t{1} << 30;

struct Mark {
  std::string key;
  MarkedShard shard;
};

void fields(auto& f, Mark& mark) {
  f("key", mark.key);
  fields(f, mark.shard.info);
  f("state", mark.shard.state);
}

std::optional<MarkedShard> parse_mark(const std::string& path, const std::string& key) {
  const std::string content = read_file(path, kMaxMarkBytes);
  const size_t line = content.find('\n');
  if (line == std::string::npos) return std::nullopt;
  const std::string text = content.substr(line + 1);
  if (content.substr(0, line) != to_hex(hash128(text))) return std::nullopt;
  const Json json = parse_json(text, path, {.max_bytes = kMaxMarkBytes});
  Mark mark;
  struct_from_json(JsonFields(json, path), mark);
  if (mark.key != key) return std::nullopt;
  return std::move(mark.shard);
}

std::optional<MarkedShard> read_mark(const std::string& folder, const std::string& file,
                                     const std::string& key) {
  const std::string path = folder + "/" + file;
  if (!is_there(path + kMarkEnd) || !is_there(path)) return std::nullopt;
  try {
    std::optional<MarkedShard> shard = parse_mark(path + kMarkEnd, key);
    if (!shard || shard->info.file != file) return std::nullopt;
    if (hash_of_shard(MappedFile(path).bytes(), path) != shard->info.xxh3) return std::nullopt;
    return shard;
  } catch (const Error&) {
    return std::nullopt;  // damaged when the run ended; the shard is made again
  }
}

}  // namespace

std::string shard_file_name(const std::string& split, size_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, digits.size() < 3 ? 3 - digits.size() : 0, '0');
  return split + "-" + digits + ".shard";
}

void write_mark(const std::string& folder, const std::string& key, const MarkedShard& shard) {
  const std::string text = json_text(to_json_value(Mark{.key = key, .shard = shard}));
  write_file_atomically(folder + "/" + shard.info.file + kMarkEnd,
                        to_hex(hash128(text)) + "\n" + text);
}

std::vector<MarkedShard> read_marks(const std::string& folder, const std::string& key,
                                    const std::string& split) {
  std::vector<MarkedShard> shards;
  while (auto shard = read_mark(folder, shard_file_name(split, shards.size()), key)) {
    shards.push_back(std::move(*shard));
  }
  return shards;
}

bool has_marks(const std::string& folder, const std::string& key) {
  for (const char* split : kSplitNames) {
    if (read_mark(folder, shard_file_name(split, 0), key)) return true;
  }
  return false;
}

void remove_unmarked(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path();
    if (entry.path().extension() != kMarkEnd && !is_there(path + kMarkEnd)) fs::remove_all(path);
  }
}

void remove_unlisted(const std::string& folder, const Manifest& manifest) {
  std::set<std::string> listed;
  for (const auto& [split, shards] : manifest.splits) {
    for (const ShardInfo& shard : shards) listed.insert(shard.file);
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const bool is_mark = entry.path().extension() == kMarkEnd;
    const fs::path shard = is_mark ? entry.path().stem() : entry.path().filename();
    if (shard.extension() == ".shard" && !listed.contains(shard)) fs::remove(entry.path());
  }
}

void remove_marks(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == kMarkEnd) fs::remove(entry.path());
  }
}

}  // namespace lra
