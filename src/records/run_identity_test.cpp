#include "records/run_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/scratch_folder.h"

namespace lra {
namespace {

using ::testing::HasSubstr;

const RunIdentity kRun = {.task = "listops",
                          .task_title = "Long ListOps",
                          .task_version = 3,
                          .model = "local",
                          .model_title = "Local Attention",
                          .preset = "small",
                          .seed = uint64_t{1} << 62,
                          .config_hash = "c",
                          .data_hash = "d",
                          .fingerprint = "f"};

TEST(RunIdentity, IsReadBackFromMetadata) {
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  EXPECT_EQ(find_identity(metadata, "x"), std::nullopt);
  add_identity(kRun, metadata);
  EXPECT_EQ(find_identity(metadata, "x"), kRun);
  for (const char* bad : {"", "{}", "[]", "{\"task\": 3}"}) {
    metadata["lra.run"] = bad;
    EXPECT_THAT(error_of([&] { find_identity(metadata, "x.safetensors"); }),
                HasSubstr("x.safetensors"));
  }
}

TEST(RunIdentity, OfOthersIsRefused) {
  EXPECT_EQ(error_of([] { refuse_foreign_weights(kRun, {{kRun}}, "x", "look"); }), "");
  EXPECT_THAT(error_of([] { refuse_foreign_weights({}, {{kRun}}, "x", "look"); }),
              HasSubstr("x: does not say which run its weights are of; expected those of listops "
                        "local, seed 4611686018427387904, settings c, data d; look"));
  RunIdentity other = kRun;
  other.model = "bigbird";
  other.config_hash = "c2";
  EXPECT_TRUE(is_one_of(kRun, {{other, kRun}}));
  EXPECT_FALSE(is_one_of(other, {{kRun}}));
  EXPECT_THAT(error_of([&] { refuse_foreign_weights(other, {{kRun}}, "x", "look"); }),
              HasSubstr("another run: model 'bigbird' instead of 'local'; expected"));
}

}  // namespace
}  // namespace lra
