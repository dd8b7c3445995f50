#include "records/fingerprint.h"

#include "base/hash.h"

namespace lra {

std::string config_hash(const ConfigTable& resolved) {
  return to_hex(hash128(canonical_text(resolved)));
}

std::string run_fingerprint(const std::string& config_hash, const std::string& data_hash,
                            int64_t task_version) {
  return to_hex(hash128(config_hash + data_hash + std::to_string(task_version)));
}

}  // namespace lra
