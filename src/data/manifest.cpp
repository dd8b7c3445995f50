#include "data/manifest.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "data/shard_view.h"
#include "io/findings_json.h"

namespace lra {

LRA_FIELDS(SideFileInfo, num_bytes, xxh3)
LRA_FIELDS(StoredBaselines, length, num_train, num_test, accuracies)
LRA_FIELDS(Manifest, task, task_version, source, source_hash, num_towers, token_bytes, token_offset,
           settings, splits, side_files, notes, data_checks, baselines)

namespace {

constexpr int kSchemaWithoutChecks = 2, kSchemaWithDoubts = 3;

// Looking a field up is linear in their number; a manifest has some ten of each kind.
constexpr JsonLimits kLimits = {.max_bytes = kMaxManifestBytes, .max_depth = 8, .max_keys = 1000};

// Refuses what would lead a reader out of the folder or of a number's range; the counts are
// compared with those of the shards.
void refuse_unusable(const Manifest& manifest, const std::string& name) {
  const auto require = [&](bool possible, const std::string& what, const std::string& expected) {
    if (!possible) throw Error({.where = name, .what = what, .expected = expected});
  };
  const auto require_number = [&](const char* what, int64_t value, int64_t low, int64_t high) {
    require(value >= low && value <= high, std::string(what) + " is " + std::to_string(value),
            std::to_string(low) + " to " + std::to_string(high));
  };
  require(manifest.source == "generated" || manifest.source == "imported",
          "source is " + in_quotes(manifest.source), "generated or imported");
  require_number("num_towers", manifest.num_towers, 1, 2);
  require_number("token_bytes", manifest.token_bytes, 1, 4 * kMaxTokenWords);
  require(manifest.token_bytes <= 2 || manifest.token_bytes % 4 == 0,
          "token_bytes is " + std::to_string(manifest.token_bytes), "1, 2 or a multiple of 4");
  require_number("token_offset", manifest.token_offset, 0, 1 << 16);
  const auto require_plain = [&](const std::string& file) {
    require(is_plain_file_name(file), "the file name " + in_quotes(file), "a plain file name");
  };
  for (const auto& [split, shards] : manifest.splits) {
    require(std::ranges::find(kSplitNames, split) != kSplitNames.end(),
            "the split " + in_quotes(split), "train, val or test");
    for (const ShardInfo& shard : shards) require_plain(shard.file);
  }
  for (const auto& [file, unused] : manifest.side_files) require_plain(file);
}

// Settings and notes can hold anything, so only the hash detects a flipped bit in them.
void refuse_damaged(Json json, std::string_view text, const std::string& name) {
  const std::string whole = json_text(json, 2) + "\n";
  const Json hash = json.at("xxh3");
  json.erase("xxh3");
  if (text == whole && hash == to_hex(hash128(json_text(json, 2)))) return;
  throw Error({.where = name,
               .what = "is not as it was written: its content does not match its hash",
               .advice = "the file is damaged or was edited: prepare the dataset again"});
}

}  // namespace

bool is_plain_file_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 100 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::string hash_of_settings(const std::map<std::string, std::string>& settings,
                             std::string begin) {
  for (const auto& [key, value] : settings) begin += key + "=" + value + "\n";
  return to_hex(hash128(begin));
}

std::string manifest_text(const Manifest& manifest) {
  Json json = {{"schema", manifest.data_checks ? kManifestSchema : kSchemaWithoutChecks}};
  json.update(to_json_value(manifest));
  json["xxh3"] = to_hex(hash128(json_text(json, 2)));
  return json_text(json, 2) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
  const Json json = parse_json(text, name, kLimits);
  JsonFields fields(json, name);
  const auto schema = fields.get<int64_t>("schema");
  if (schema > kManifestSchema) {
    refuse_newer(name, "schema", static_cast<uint64_t>(schema), kManifestSchema);
  }
  if (schema < kSchemaWithoutChecks) {
    fields.fail("schema", "is " + std::to_string(schema), std::to_string(kManifestSchema));
  }
  if (schema == kSchemaWithDoubts) (void)fields.get<std::vector<std::string>>("doubts");
  (void)fields.get<std::string>("xxh3");
  Manifest manifest;
  struct_from_json(fields, manifest);
  refuse_unusable(manifest, name);
  refuse_damaged(json, text, name);
  return manifest;
}

}  // namespace lra
