#include "io/digest.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

// RFC 1321, appendix A.5; FIPS 180-4, examples.
TEST(Digest, GivesThePublishedVectors) {
  EXPECT_EQ(digest(DigestKind::kMd5, ""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(digest(DigestKind::kMd5, "abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(digest(DigestKind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// The examples of FIPS 180-4, and the lengths at which the padding takes another block.
TEST(Digest, Sha256AgreesWithThePublishedVectors) {
  const auto sha256 = [](std::string_view data) { return digest(DigestKind::kSha256, data); };
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, OfAFileIsThatOfItsBytes) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/x", content((size_t{1} << 20) + 17, 'q');
  write_file_atomically(path, content);
  EXPECT_EQ(digest_file(DigestKind::kSha256, path), digest(DigestKind::kSha256, content));
  EXPECT_THROW(digest_file(DigestKind::kSha256, folder.path() + "/none"), Error);
}

}  // namespace
}  // namespace lra
