#include "report/formats/csp_hash.h"

#include <gtest/gtest.h>

namespace lra::report {
namespace {

TEST(CspHash, IsBase64OfTheDigest) {
  EXPECT_EQ(csp_hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

}  // namespace
}  // namespace lra::report
