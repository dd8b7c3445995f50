#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace lra {
namespace {

using testing::HasSubstr;

TEST(Error, SaysWhereWhatExpectedAndAdvice) {
  const Error error({.where = "text.tsv:17",
                     .what = "label is 'x'",
                     .expected = "0 or 1",
                     .advice = "run lra data check text"});
  EXPECT_STREQ(error.what(), "text.tsv:17: label is 'x'; expected 0 or 1; run lra data check text");
  EXPECT_EQ(error.code(), ExitCode::kUserError);
}

TEST(Error, LeavesEmptyPartsOut) { EXPECT_STREQ(Error({.what = "no data"}).what(), "no data"); }

TEST(Error, IsOneLineWithControlCharactersAsEscapes) {
  const Error error({.where = "a\nb", .what = "\x1b[31mred\x7f\r", .advice = "\t"});
  EXPECT_STREQ(error.what(), "a b: \\x1b[31mred\\x7f\\x0d; \\x09");
}

TEST(Error, KeepsCharactersOfOtherAlphabets) {
  EXPECT_THAT(Error({.what = "größe 長さ"}).what(), HasSubstr("größe 長さ"));
}

TEST(Error, OfInputAndOutputCarriesCauseAndExitCode) {
  const Error error = io_error("run/a", "cannot be written", ENOSPC);
  EXPECT_STREQ(error.what(), "run/a: cannot be written: No space left on device");
  EXPECT_EQ(static_cast<int>(error.code()), 74);
}

TEST(Error, OfAFileAboveTheLimitSaysHowToRaiseIt) {
  const Error error = io_error("run/a", "cannot be written", EFBIG);
  EXPECT_THAT(error.what(), HasSubstr("run/a: cannot be written: File too large; raise the limit"));
  EXPECT_THAT(error.what(), HasSubstr("ulimit -f"));
  EXPECT_EQ(error.code(), ExitCode::kUserError);
}

TEST(Check, PrintsBothValues) {
  try {
    LRA_CHECK_EQ(1 + 1, 3);
    FAIL() << "the check passed";
  } catch (const CheckFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("1 + 1 == 3 (2 vs 3)"));
    EXPECT_THAT(failure.what(), HasSubstr("error_test.cpp:"));
  }
}

TEST(Check, EvaluatesItsOperandsOnce) {
  int calls = 0;
  LRA_CHECK_LT(calls++, 1);
  EXPECT_EQ(calls, 1);
}

TEST(Check, ComparesInEveryDirection) {
  EXPECT_NO_THROW(LRA_CHECK_LE(1, 1));
  EXPECT_NO_THROW(LRA_CHECK_GE(1, 1));
  EXPECT_THROW(LRA_CHECK_LT(1, 1), CheckFailure);
  EXPECT_THROW(LRA_CHECK_GT(1, 1), CheckFailure);
  EXPECT_THROW(LRA_CHECK(false), CheckFailure);
}

}  // namespace
}  // namespace lra
