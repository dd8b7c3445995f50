#include "data/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
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
  EXPECT_FALSE(parse_manifest(text, "manifest.json").data_checks) << "as schema 2, before checks";
  Manifest checked = plain_manifest();
  checked.data_checks = {{"copies", CheckLevel::kWarning, "test", "3 are in train", true},
                         {"remarks", CheckLevel::kNote, "", "few"}};
  checked.baselines = {
      .length = 9, .num_train = 8, .num_test = 7, .accuracies = {{"b", 0.25}, {"a", 1}}};
  const Manifest read = parse_manifest(manifest_text(checked), "manifest.json");
  EXPECT_EQ(read.data_checks, checked.data_checks);
  EXPECT_EQ(read.baselines->accuracies, checked.baselines->accuracies);
  EXPECT_EQ(read.baselines->num_test, 7);
}

// Schema 3 had doubts, which are not those of today's checks: its data is checked again.
TEST(Manifest, OfSchema3IsReadWithoutItsDoubts) {
  std::string text = manifest_text(plain_manifest());
  text.replace(text.find("\"schema\": 2"), 11, "\"schema\": 3");
  const size_t end = text.find(",\n  \"xxh3\"", text.find("\"notes\""));
  const std::string body = text.substr(0, end) + ",\n  \"doubts\": [\n    \"odd\"\n  ]";
  const std::string hash = to_hex(hash128(body + "\n}"));
  const Manifest read =
      parse_manifest(body + ",\n  \"xxh3\": \"" + hash + "\"\n}\n", "manifest.json");
  EXPECT_FALSE(read.data_checks);
  EXPECT_EQ(read.task, "text");
}

TEST(Manifest, ThatWasEditedIsRefused) {
  Manifest checked = plain_manifest();
  checked.data_checks = {{"copies", CheckLevel::kWarning, "test", "3 are in train", false}};
  std::string text = manifest_text(checked);
  text.replace(text.find("false"), 5, "true");
  EXPECT_THAT(error_of([&] { parse_manifest(text, "manifest.json"); }),
              HasSubstr("does not match its hash"));
}

TEST(Manifest, OfANewerProgramIsCalledSo) {
  std::string text = manifest_text(plain_manifest());
  const size_t at = text.find("\"schema\": 2");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 11, "\"schema\": 9");
  EXPECT_THAT(error_of([&] { parse_manifest(text, "manifest.json"); }),
              HasSubstr("has schema 9, which a newer version of lra writes; expected 4 or less"));
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
