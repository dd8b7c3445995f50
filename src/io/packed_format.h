// Formats of packed files by their first bytes: all that a format fixes there, since the two bytes
// of a gzip file or the letters "BZh" also begin other files.
#pragma once

#include <string_view>

namespace lra {

enum class PackedFormat { kNone, kGzip, kBzip2, kXz, kZstd, kZip };

inline constexpr size_t kPackedFormatBytes = 10;  // that the longest needs

// The format of a file that begins with `first`.
inline PackedFormat packed_format(std::string_view first) {
  using namespace std::string_view_literals;
  if (first.starts_with("\x1F\x8B\x08"sv)) return PackedFormat::kGzip;  // deflate, the only method
  if (first.size() >= kPackedFormatBytes && first.starts_with("BZh"sv) && first[3] >= '1' &&
      first[3] <= '9') {
    const std::string_view block = first.substr(4, 6);  // digits of pi, or of its root: no block
    const bool is_known =
        block == "\x31\x41\x59\x26\x53\x59"sv || block == "\x17\x72\x45\x38\x50\x90"sv;
    return is_known ? PackedFormat::kBzip2 : PackedFormat::kNone;
  }
  if (first.starts_with("\xFD\x37zXZ\0"sv)) return PackedFormat::kXz;
  if (first.starts_with("\x28\xB5\x2F\xFD"sv)) return PackedFormat::kZstd;
  if (first.starts_with("PK\3\4"sv)) return PackedFormat::kZip;
  return PackedFormat::kNone;
}

}  // namespace lra
