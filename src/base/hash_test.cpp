#include "base/hash.h"

#include <gtest/gtest.h>

namespace lra {
namespace {

TEST(Hash, MatchesXxhsum) {
  EXPECT_EQ(to_hex(hash128("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(to_hex(hash64("")), "2d06800538d394c2");
  EXPECT_EQ(to_hex(hash128("abc")), "06b05ab6733a618578af5f94892f3950");
  EXPECT_EQ(to_hex(hash64("abc")), "78af5f94892f3950");
}

TEST(Hash, HexKeepsLeadingZeros) {
  EXPECT_EQ(to_hex(uint64_t{0xab}), "00000000000000ab");
  EXPECT_EQ(to_hex(Hash128{1, 2}), "00000000000000010000000000000002");
}

TEST(Hash, SeedsGiveOtherHashes) { EXPECT_NE(hash64("abc", 1), hash64("abc", 2)); }

TEST(Hasher, EqualsTheHashOfTheWholeHoweverItIsCut) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * 7);
  for (const size_t piece : {1, 63, 64, 1000, 5000}) {
    Hasher hasher;
    for (size_t i = 0; i < text.size(); i += piece) {
      hasher.append(std::string_view(text).substr(i, piece));
    }
    EXPECT_EQ(hasher.digest(), hash128(text)) << piece;
  }
}

TEST(Hasher, DigestDoesNotEndTheStream) {
  Hasher hasher;
  EXPECT_EQ(hasher.digest(), hash128(""));
  EXPECT_EQ(hasher.append("").append("ab").digest(), hash128("ab"));
  EXPECT_EQ(hasher.append("c").digest(), hash128("abc"));
}

}  // namespace
}  // namespace lra
