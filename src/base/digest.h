// SHA-256 and MD5 of files, to compare with what their publishers print. Contents of our own are
// hashed by base/hash.h, which is a hundred times faster.
#pragma once

#include <string>
#include <string_view>

namespace lra {

enum class DigestKind { kMd5, kSha256 };

// Lower-case hex digits.
std::string digest(DigestKind kind, std::string_view data);
// Throws lra::Error when the file cannot be read.
std::string digest_file(DigestKind kind, const std::string& path);

}  // namespace lra
