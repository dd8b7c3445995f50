#include "base/digest.h"

#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/scratch_folder.h"

namespace lra {
namespace {

// RFC 1321, appendix A.5; FIPS 180-4, examples.
TEST(Digest, GivesThePublishedVectors) {
  EXPECT_EQ(digest(DigestKind::kMd5, ""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(digest(DigestKind::kMd5, "abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(digest(DigestKind::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
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
