#include "records/run_identity.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "records/record_json.h"

namespace lra {
namespace {

constexpr const char* kKey = "lra.run";

// "task 'text' instead of 'listops', seed 2 instead of 1"
std::string differences(const RunIdentity& found, const RunIdentity& expected) {
  std::string text;
  const auto compare = [&](const char* what, const std::string& is, const std::string& should_be) {
    if (is == should_be) return;
    text += std::string(text.empty() ? "" : ", ") + what + " " + is + " instead of " + should_be;
  };
  compare("task", in_quotes(found.task), in_quotes(expected.task));
  compare("task version", std::to_string(found.task_version),
          std::to_string(expected.task_version));
  compare("model", in_quotes(found.model), in_quotes(expected.model));
  compare("seed", std::to_string(found.seed), std::to_string(expected.seed));
  // The seed is one of the settings.
  if (text.empty()) compare("settings", found.config_hash, expected.config_hash);
  compare("data", found.data_hash, expected.data_hash);
  return text;
}

}  // namespace

std::string config_hash(const ConfigTable& resolved) {
  return to_hex(hash128(canonical_text(resolved)));
}

std::string run_fingerprint(const std::string& config_hash, const std::string& data_hash,
                            int64_t task_version) {
  return to_hex(hash128(config_hash + data_hash + std::to_string(task_version)));
}

std::string text_of(const RunIdentity& run) {
  return run.task + " " + run.model + ", seed " + std::to_string(run.seed) + ", settings " +
         run.config_hash + ", data " + run.data_hash;
}

void add_identity(const RunIdentity& run, std::map<std::string, std::string>& metadata) {
  metadata[kKey] = json_text(to_json_value(run));
}

std::optional<RunIdentity> find_identity(const std::map<std::string, std::string>& metadata,
                                         const std::string& name) {
  const auto found = metadata.find(kKey);
  if (found == metadata.end()) return {};
  const Json json = parse_json(found->second, name);
  RunIdentity run;
  struct_from_json(JsonFields(json, name, kKey), run);
  return run;
}

bool is_one_of(const RunIdentity& found, std::span<const RunIdentity> run) {
  return std::ranges::find(run, found) != run.end();
}

void refuse_foreign_weights(const std::optional<RunIdentity>& found,
                            std::span<const RunIdentity> expected, const std::string& file,
                            const std::string& advice) {
  if (found && is_one_of(*found, expected)) return;
  const RunIdentity& run = expected.front();
  throw Error({.where = file,
               .what = found ? "holds the weights of another run: " + differences(*found, run)
                             : "does not say which run its weights are of",
               .expected = "those of " + text_of(run),
               .advice = advice});
}

}  // namespace lra
