#include "io/digest.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "base/error.h"

namespace lra {
namespace {

class Digester {
 public:
  explicit Digester(DigestKind kind) : context_(EVP_MD_CTX_new()) {
    const EVP_MD* function = kind == DigestKind::kMd5 ? EVP_md5() : EVP_sha256();
    LRA_CHECK(context_ != nullptr);
    LRA_CHECK_EQ(EVP_DigestInit_ex(context_.get(), function, nullptr), 1);
  }

  void append(const void* data, size_t size) {
    LRA_CHECK_EQ(EVP_DigestUpdate(context_.get(), data, size), 1);
  }

  std::string bytes() {
    std::array<char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    LRA_CHECK_EQ(
        EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size),
        1);
    return {bytes.data(), size};
  }

  std::string hex() {
    std::string text;
    for (const char byte : bytes()) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      text += kDigits[static_cast<uint8_t>(byte) >> 4];
      text += kDigits[static_cast<uint8_t>(byte) & 15];
    }
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace

std::string digest_bytes(DigestKind kind, std::string_view data) {
  Digester digester(kind);
  digester.append(data.data(), data.size());
  return digester.bytes();
}

std::string digest(DigestKind kind, std::string_view data) {
  Digester digester(kind);
  digester.append(data.data(), data.size());
  return digester.hex();
}

std::string digest_file(DigestKind kind, const std::string& path) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) throw io_error(path, "cannot be opened", errno);
  Digester digester(kind);
  std::string block(size_t{1} << 20, '\0');
  while (const size_t count = std::fread(block.data(), 1, block.size(), file.get())) {
    digester.append(block.data(), count);
  }
  if (std::ferror(file.get())) throw io_error(path, "cannot be read", errno);
  return digester.hex();
}

}  // namespace lra
