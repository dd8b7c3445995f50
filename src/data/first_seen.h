// Finds equal items among many by their 128-bit hashes.
#pragma once

#include <optional>
#include <unordered_map>

#include "base/hash.h"

namespace lra {

class FirstSeen {
 public:
  // Remembers `id` under `hash`; returns the id that came first when there was one already.
  std::optional<int64_t> add(const Hash128& hash, int64_t id) {
    const auto [place, is_new] = ids_.emplace(hash, id);
    if (is_new) return std::nullopt;
    return place->second;
  }
  void reserve(int64_t count) { ids_.reserve(static_cast<size_t>(count)); }

 private:
  struct LowHalf {
    size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.low); }
  };
  std::unordered_map<Hash128, int64_t, LowHalf> ids_;
};

}  // namespace lra
