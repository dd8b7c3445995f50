#include "records/provenance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/parallel.h"

namespace lra {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::MatchesRegex;

TEST(Provenance, IsFilled) {
  const Provenance p = make_provenance({"lra", "train", "text"});
  EXPECT_THAT(p.lra_version, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(p.git_revision, AnyOf("unknown", MatchesRegex("[0-9a-f]+")));
  EXPECT_THAT(p.git_dirty, AnyOf("", MatchesRegex("[0-9a-f]+")));
  EXPECT_THAT(p.compiler, MatchesRegex("(g\\+\\+|clang\\+\\+) [0-9]+.*"));
  EXPECT_NE(p.processor, "");
  EXPECT_THAT(p.isa, AnyOf("avx512", "avx2", "neon", "baseline"));
  EXPECT_EQ(p.threads, num_threads());
  EXPECT_THAT(p.host_os, MatchesRegex("Linux .+"));
  EXPECT_THAT(p.started_utc, MatchesRegex("20[0-9-]+T[0-9:]+Z"));
  EXPECT_THAT(p.command, ElementsAre("lra", "train", "text"));
}

TEST(Provenance, LeavesToTheCallerWhatItCannotKnow) {
  const Provenance p = make_provenance({});
  EXPECT_EQ(p.torch_version, "");
  EXPECT_EQ(p.device, "");
  EXPECT_EQ(p.finished_utc, "");
  EXPECT_TRUE(p.kernels.empty());
}

}  // namespace
}  // namespace lra
