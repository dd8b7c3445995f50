// Which run weights belong to: what a checkpoint says of itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "records/run_record.h"

namespace lra {

// As in the record of the run.
struct RunIdentity {
  std::string task, model;
  int64_t task_version = 0;
  uint64_t seed = 0;
  std::string config_hash, data_hash;
  bool operator==(const RunIdentity&) const = default;
};

RunIdentity identity_of(const RunRecord& record);

// "listops local, seed 3, settings 0123456789abcdef0123456789abcdef, data ..."
std::string text_of(const RunIdentity& run);

// The entry "lra.run" in the metadata of a checkpoint.
void add_identity(const RunIdentity& run, std::map<std::string, std::string>& metadata);

// Nothing for files without the entry. Throws lra::Error for an entry that cannot be read; `name`
// is that of the file.
std::optional<RunIdentity> find_identity(const std::map<std::string, std::string>& metadata,
                                         const std::string& name);

// Throws lra::Error that names what differs unless `found` is `expected`. Shapes may fit and the
// figures look right all the same.
void refuse_foreign_weights(const std::optional<RunIdentity>& found, const RunIdentity& expected,
                            const std::string& file);

}  // namespace lra
