#include "records/run_identity.h"

#include "base/error.h"
#include "base/quoted.h"
#include "io/json.h"

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

RunIdentity identity_of(const RunRecord& record) {
  return {.task = record.task,
          .model = record.model,
          .task_version = record.task_version,
          .seed = record.seed,
          .config_hash = record.config_hash,
          .data_hash = record.data_hash};
}

std::string text_of(const RunIdentity& run) {
  return run.task + " " + run.model + ", seed " + std::to_string(run.seed) + ", settings " +
         run.config_hash + ", data " + run.data_hash;
}

void add_identity(const RunIdentity& run, std::map<std::string, std::string>& metadata) {
  metadata[kKey] = json_text({{"task", run.task},
                              {"task_version", run.task_version},
                              {"model", run.model},
                              {"seed", run.seed},
                              {"config_hash", run.config_hash},
                              {"data_hash", run.data_hash}});
}

std::optional<RunIdentity> find_identity(const std::map<std::string, std::string>& metadata,
                                         const std::string& name) {
  const auto found = metadata.find(kKey);
  if (found == metadata.end()) return {};
  const Json json = parse_json(found->second, name);
  JsonFields fields(json, name, kKey);
  return RunIdentity{.task = fields.get<std::string>("task"),
                     .model = fields.get<std::string>("model"),
                     .task_version = fields.get<int64_t>("task_version"),
                     .seed = fields.get<uint64_t>("seed"),
                     .config_hash = fields.get<std::string>("config_hash"),
                     .data_hash = fields.get<std::string>("data_hash")};
}

void refuse_foreign_weights(const std::optional<RunIdentity>& found, const RunIdentity& expected,
                            const std::string& file) {
  if (found == expected) return;
  throw Error({.where = file,
               .what = found ? "holds the weights of another run: " + differences(*found, expected)
                             : "does not say which run its weights are of",
               .expected = "those of " + text_of(expected),
               .advice = "'lra eval' and 'lra analyze' take them with --foreign-weights"});
}

}  // namespace lra
