// The identity of a run, in its record, in its analyses and in its checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/config.h"

namespace lra {

struct RunIdentity {
  std::string task = {}, task_title = {};
  int64_t task_version = 0;
  std::string model = {}, model_title = {}, preset = {};
  uint64_t seed = 0;
  std::string config_hash = {}, data_hash = {};  // data_hash: empty where no data was read
  std::string fingerprint = {};  // of these hashes and the task's version; empty without data
  bool operator==(const RunIdentity&) const = default;
};

// 32 hexadecimal digits each.
std::string config_hash(const ConfigTable& resolved);
std::string run_fingerprint(const std::string& config_hash, const std::string& data_hash,
                            int64_t task_version);

// "listops local, seed 3, settings 0123456789abcdef0123456789abcdef, data ..."
std::string text_of(const RunIdentity& run);

// The entry "lra.run" in the metadata of a checkpoint.
void add_identity(const RunIdentity& run, std::map<std::string, std::string>& metadata);

// Returns nothing for files without the entry. Throws lra::Error for an entry that cannot be read;
// `name` is that of the file.
std::optional<RunIdentity> find_identity(const std::map<std::string, std::string>& metadata,
                                         const std::string& name);

// True if `found` is one of a run's identities (identities_of in run_record.h).
bool is_one_of(const RunIdentity& found, std::span<const RunIdentity> run);

// Throws an lra::Error that names the differences from the first of `expected` unless `found` is
// one of them. Weights of another run may fit in shape and give plausible figures.
void refuse_foreign_weights(const std::optional<RunIdentity>& found,
                            std::span<const RunIdentity> expected, const std::string& file,
                            const std::string& advice);

}  // namespace lra
