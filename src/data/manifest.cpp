#include "data/manifest.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "data/findings_json.h"
#include "data/shard_view.h"
#include "io/json.h"

namespace lra {
namespace {

constexpr int kSchemaWithoutChecks = 2, kSchemaWithDoubts = 3;

// Looking a field up is linear in their number; a manifest has some ten of each kind.
constexpr JsonLimits kLimits = {.max_bytes = 64 << 20, .max_depth = 8, .max_keys = 1000};

bool is_hash(const std::string& text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

int64_t count_of(JsonFields& fields, const char* key) {
  const auto value = fields.get<int64_t>(key);
  if (value < 0) fields.fail(key, "is " + std::to_string(value), "a count");
  return value;
}

std::string hash_of(JsonFields& fields) {
  std::string hash = fields.get<std::string>("xxh3");
  if (!is_hash(hash)) fields.fail("xxh3", "is not a hash", "32 hex digits");
  return hash;
}

int64_t number_between(JsonFields& fields, const char* key, int64_t low, int64_t high) {
  const auto value = fields.get<int64_t>(key);
  if (value < low || value > high) {
    fields.fail(key, "is " + std::to_string(value),
                std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

ShardInfo parse_shard(const Json& json, const std::string& name, const std::string& section) {
  JsonFields fields(json, name, section);
  ShardInfo shard;
  shard.file = fields.get<std::string>("file");
  if (!is_plain_file_name(shard.file)) {
    fields.fail("file", "leads out of the folder or is odd", "a plain file name");
  }
  shard.num_examples = count_of(fields, "num_examples");
  shard.num_tokens = count_of(fields, "num_tokens");
  shard.num_bytes = count_of(fields, "num_bytes");
  shard.xxh3 = hash_of(fields);
  fields.finish();
  return shard;
}

void parse_splits(JsonFields fields, const std::string& name, Manifest& manifest) {
  for (const auto& [split, unused] : fields.json().items()) {
    if (split != "train" && split != "val" && split != "test") {
      fields.fail(split, "is not a split", "train, val or test");
    }
    std::vector<ShardInfo>& shards = manifest.splits[split];
    const Json& list = fields.array(split.c_str());
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string section = fields.path_of(split) + "[" + std::to_string(i) + "]";
      shards.push_back(parse_shard(list[i], name, section));
    }
  }
}

void parse_side_files(JsonFields fields, Manifest& manifest) {
  for (const auto& [file, unused] : fields.json().items()) {
    if (!is_plain_file_name(file)) fields.fail(file, "is an odd name", "a plain file name");
    JsonFields entry = fields.object(file.c_str());
    SideFileInfo& info = manifest.side_files[file];
    info.num_bytes = count_of(entry, "num_bytes");
    info.xxh3 = hash_of(entry);
    entry.finish();
  }
}

Json baselines_json(const StoredBaselines& baselines) {
  Json accuracies = Json::object();
  for (const auto& [name, accuracy] : baselines.accuracies) accuracies[name] = accuracy;
  return {{"length", baselines.length},
          {"num_train", baselines.num_train},
          {"num_test", baselines.num_test},
          {"accuracies", std::move(accuracies)}};
}

StoredBaselines parse_baselines(JsonFields fields) {
  StoredBaselines baselines{.length = count_of(fields, "length"),
                            .num_train = count_of(fields, "num_train"),
                            .num_test = count_of(fields, "num_test")};
  JsonFields accuracies = fields.object("accuracies");
  for (const auto& [name, unused] : accuracies.json().items()) {
    baselines.accuracies.emplace_back(name, accuracies.get<double>(name.c_str()));
  }
  fields.finish();
  return baselines;
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
  Json json;
  json["schema"] = manifest.data_checks ? kManifestSchema : kSchemaWithoutChecks;
  json["task"] = manifest.task;
  json["task_version"] = manifest.task_version;
  json["source"] = manifest.source;
  json["source_hash"] = manifest.source_hash;
  json["num_towers"] = manifest.num_towers;
  json["token_bytes"] = manifest.token_bytes;
  json["token_offset"] = manifest.token_offset;
  json["settings"] = Json::object();
  for (const auto& [key, value] : manifest.settings) json["settings"][key] = value;
  json["splits"] = Json::object();
  for (const auto& [split, shards] : manifest.splits) {
    Json& list = json["splits"][split] = Json::array();
    for (const ShardInfo& shard : shards) {
      list.push_back({{"file", shard.file},
                      {"num_examples", shard.num_examples},
                      {"num_tokens", shard.num_tokens},
                      {"num_bytes", shard.num_bytes},
                      {"xxh3", shard.xxh3}});
    }
  }
  json["side_files"] = Json::object();
  for (const auto& [file, info] : manifest.side_files) {
    json["side_files"][file] = {{"num_bytes", info.num_bytes}, {"xxh3", info.xxh3}};
  }
  json["notes"] = manifest.notes;
  if (manifest.data_checks) {
    json["data_checks"] = findings_json(*manifest.data_checks);
    json["baselines"] = baselines_json(manifest.baselines.value_or(StoredBaselines{}));
  }
  json["xxh3"] = to_hex(hash128(json_text(json, 2)));
  return json_text(json, 2) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
  const Json json = parse_json(text, name, kLimits);
  JsonFields fields(json, name);
  Manifest manifest;
  const auto schema = fields.get<int64_t>("schema");
  if (schema > kManifestSchema) {
    refuse_newer(name, "schema", static_cast<uint64_t>(schema), kManifestSchema);
  }
  if (schema < kSchemaWithoutChecks) {
    fields.fail("schema", "is " + std::to_string(schema), std::to_string(kManifestSchema));
  }
  manifest.task = fields.get<std::string>("task");
  manifest.task_version = count_of(fields, "task_version");
  manifest.source = fields.get<std::string>("source");
  if (manifest.source != "generated" && manifest.source != "imported") {
    fields.fail("source", "is '" + manifest.source + "'", "generated or imported");
  }
  manifest.source_hash = fields.get<std::string>("source_hash");
  manifest.num_towers = number_between(fields, "num_towers", 1, 2);
  manifest.token_bytes = number_between(fields, "token_bytes", 1, 4 * kMaxTokenWords);
  if (manifest.token_bytes > 2 && manifest.token_bytes % 4 != 0) {
    fields.fail("token_bytes", "is " + std::to_string(manifest.token_bytes),
                "1, 2 or a multiple of 4");
  }
  manifest.token_offset = number_between(fields, "token_offset", 0, 1 << 16);
  JsonFields settings = fields.object("settings");
  for (const auto& [key, unused] : settings.json().items()) {
    manifest.settings[key] = settings.get<std::string>(key.c_str());
  }
  parse_splits(fields.object("splits"), name, manifest);
  parse_side_files(fields.object("side_files"), manifest);
  manifest.notes = fields.get<std::vector<std::string>>("notes");
  if (schema == kSchemaWithDoubts) (void)fields.get<std::vector<std::string>>("doubts");
  if (schema == kManifestSchema) {
    manifest.data_checks = get_findings(fields, "data_checks", name);
    manifest.baselines = parse_baselines(fields.object("baselines"));
  }
  hash_of(fields);
  fields.finish();
  refuse_damaged(json, text, name);
  return manifest;
}

}  // namespace lra
