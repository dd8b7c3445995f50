// SHA-256 and MD5 of files, for comparison with published digests. Our own contents are hashed by
// base/hash.h, which is a hundred times faster.
#pragma once

#include <string>
#include <string_view>

namespace lra {

enum class DigestKind { kMd5, kSha256 };

// The bytes themselves: 16 of MD5, 32 of SHA-256.
std::string digest_bytes(DigestKind kind, std::string_view data);
// Lower-case hex digits.
std::string digest(DigestKind kind, std::string_view data);
// Throws lra::Error when the file cannot be read.
std::string digest_file(DigestKind kind, const std::string& path);

}  // namespace lra
