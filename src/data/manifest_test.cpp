#include "data/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_fixtures.h"

namespace lra {
namespace {

using ::testing::HasSubstr;

Manifest plain_manifest() {
  Manifest manifest;
  manifest.task = "text";
  manifest.source = "generated";
  manifest.settings["seed"] = "1";
  manifest.splits["train"] = {{.file = "train.shard", .xxh3 = std::string(32, 'a')}};
  return manifest;
}

TEST(Manifest, ReadsBackWhatWasWritten) {
  const std::string text = manifest_text(plain_manifest());
  EXPECT_EQ(manifest_text(parse_manifest(text, "manifest.json")), text);
  EXPECT_FALSE(parse_manifest(text, "manifest.json").doubts) << "as schema 2, before doubts";
  Manifest judged = plain_manifest();
  judged.doubts = {"odd"};
  EXPECT_EQ(parse_manifest(manifest_text(judged), "manifest.json").doubts, judged.doubts);
}

TEST(Manifest, OfANewerProgramIsCalledSo) {
  std::string text = manifest_text(plain_manifest());
  const size_t at = text.find("\"schema\": 2");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 11, "\"schema\": 9");
  EXPECT_THAT(error_of([&] { parse_manifest(text, "manifest.json"); }),
              HasSubstr("has schema 9, which a newer version of lra writes; expected 3 or less"));
}

// Fields are looked up one after another, so time grows with the square of their number.
TEST(Manifest, WithAbsurdlyManySettingsIsRefused) {
  Manifest manifest = plain_manifest();
  for (int i = 0; i < 2000; ++i) manifest.settings[std::to_string(i)] = "x";
  EXPECT_THAT(error_of([&] { parse_manifest(manifest_text(manifest), "manifest.json"); }),
              HasSubstr("more than 1000 keys"));
}

}  // namespace
}  // namespace lra
