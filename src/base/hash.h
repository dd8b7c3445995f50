// XXH3 content hashes (xxHash by Yann Collet): fast, stable across machines, not cryptographic.
//
// They tell whether two files, configs or weight sets are the same, and catch damage; they do not
// protect against an adversary.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace lra {

struct Hash128 {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128&) const = default;
};

// 32 and 16 lower-case hex digits, most significant first: the text `xxhsum` prints.
std::string to_hex(const Hash128& hash);
std::string to_hex(uint64_t hash);

Hash128 hash128(std::span<const std::byte> data);
Hash128 hash128(std::string_view data);
uint64_t hash64(std::span<const std::byte> data, uint64_t seed = 0);
uint64_t hash64(std::string_view data, uint64_t seed = 0);

// XXH3-128 of everything appended so far; equals hash128 of the concatenation.
class Hasher {
 public:
  Hasher();
  Hasher& append(std::span<const std::byte> data);
  Hasher& append(std::string_view data);
  Hash128 digest() const;

 private:
  struct FreeState {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, FreeState> state_;
};

}  // namespace lra
