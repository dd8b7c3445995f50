#include "base/hash.h"

#include <xxhash.h>

#include "base/error.h"

namespace lra {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::string to_hex(uint64_t hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 0; i < 16; ++i) text[i] = kDigits[hash >> (60 - 4 * i) & 0xF];
  return text;
}

std::string to_hex(const Hash128& hash) { return to_hex(hash.high) + to_hex(hash.low); }

Hash128 hash128(std::span<const std::byte> data) {
  const XXH128_hash_t hash = XXH3_128bits(data.data(), data.size());
  return {hash.high64, hash.low64};
}

Hash128 hash128(std::string_view data) { return hash128(bytes_of(data)); }

uint64_t hash64(std::span<const std::byte> data, uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

uint64_t hash64(std::string_view data, uint64_t seed) { return hash64(bytes_of(data), seed); }

void Hasher::FreeState::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Hasher::Hasher() : state_(XXH3_createState()) {
  LRA_CHECK(state_ != nullptr);
  XXH3_128bits_reset(state_.get());
}

Hasher& Hasher::append(std::span<const std::byte> data) {
  // The library wants a real address even for no bytes.
  if (!data.empty()) XXH3_128bits_update(state_.get(), data.data(), data.size());
  return *this;
}

Hasher& Hasher::append(std::string_view data) { return append(bytes_of(data)); }

Hash128 Hasher::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return {hash.high64, hash.low64};
}

}  // namespace lra
