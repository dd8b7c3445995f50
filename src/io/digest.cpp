#include "io/digest.h"

#include <openssl/evp.h>

#include <cstdint>

#include "base/error.h"
#include "io/mapped_file.h"

namespace lra {

std::string digest_bytes(DigestKind kind, std::string_view data) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  const EVP_MD* function = kind == DigestKind::kMd5 ? EVP_md5() : EVP_sha256();
  LRA_CHECK_EQ(EVP_Digest(data.data(), data.size(), bytes, &size, function, nullptr), 1);
  return {reinterpret_cast<const char*>(bytes), size};
}

std::string digest(DigestKind kind, std::string_view data) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : digest_bytes(kind, data)) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

std::string digest_file(DigestKind kind, const std::string& path) {
  const MappedFile file(path);
  return digest(kind, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
}

}  // namespace lra
