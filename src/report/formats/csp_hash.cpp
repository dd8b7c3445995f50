#include "report/formats/csp_hash.h"

#include <openssl/evp.h>

#include "io/digest.h"

namespace lra::report {

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // one more for the library's final zero
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

std::string csp_hash(std::string_view inline_text) {
  return "sha256-" + base64(digest_bytes(DigestKind::kSha256, inline_text));
}

}  // namespace lra::report
