#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/scratch_folder.h"
#include "io/toml.h"

namespace lra {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Sample {
  bool causal = false;
  int64_t rank = 256;
  double dropout = 0.1;
  std::string pooling = "cls";
  void fields(auto& f) {
    f("causal", causal, "whether the future is hidden");
    f("rank", rank, "length of the projection", at_least(1));
    f("dropout", dropout, "part that is dropped", rate());
    f("pooling", pooling, "how positions become one", one_of({"cls", "mean"}));
  }
};

Sample read(const std::string& toml) {
  return read_config<Sample>(parse_toml(toml, "a.toml"), "mixer");
}

TEST(Config, ReadsEveryType) {
  const Sample got = read("causal = true\nrank = 8\ndropout = 0.25\npooling = 'mean'\n");
  EXPECT_TRUE(got.causal);
  EXPECT_EQ(got.rank, 8);
  EXPECT_EQ(got.dropout, 0.25);
  EXPECT_EQ(got.pooling, "mean");
}

TEST(Config, KeepsDefaultsOfAbsentKeys) {
  const Sample got = read("");
  EXPECT_EQ(got.rank, 256);
  EXPECT_EQ(got.dropout, 0.1);
}

TEST(Config, TakesAnIntegerForANumber) { EXPECT_EQ(read("dropout = 0").dropout, 0); }

TEST(Config, RefusesUnknownKeysNamingTheNearest) {
  const std::string message = error_of([] { read("rank = 1\nrnak = 2\n"); });
  EXPECT_THAT(message, HasSubstr("a.toml:2"));
  EXPECT_THAT(message, HasSubstr("unknown key 'mixer.rnak'"));
  EXPECT_THAT(message, HasSubstr("did you mean 'mixer.rank'?"));
}

TEST(Config, RefusesWrongTypesAndValuesOutOfRange) {
  EXPECT_THAT(error_of([] { read("rank = 'x'"); }), HasSubstr("mixer.rank is a string"));
  EXPECT_THAT(error_of([] { read("rank = 1.5"); }), HasSubstr("expected an integer"));
  EXPECT_THAT(error_of([] { read("rank = 0"); }), HasSubstr("expected >= 1"));
  EXPECT_THAT(error_of([] { read("dropout = 1.0"); }), HasSubstr("expected >= 0, < 1"));
  EXPECT_THAT(error_of([] { read("dropout = nan"); }), HasSubstr("expected >= 0, < 1"));
  EXPECT_THAT(error_of([] { read("causal = 1"); }), HasSubstr("expected true or false"));
  EXPECT_THAT(error_of([] { read("pooling = 'max'"); }), HasSubstr("one of cls, mean"));
  EXPECT_THAT(error_of([] { read("pooling = 3"); }), HasSubstr("expected a string"));
}

TEST(Config, NamesFileAndLineOfBadToml) {
  EXPECT_THAT(error_of([] { parse_toml("a = 1\nb = = 2\n", "b.toml"); }),
              HasSubstr("b.toml:2: not valid TOML"));
  EXPECT_THAT(error_of([] { parse_toml("a = 2024-01-01\n", "b.toml"); }), HasSubstr("b.toml:1"));
}

TEST(Config, FailsCleanlyOnHostileToml) {
  EXPECT_THROW(parse_toml("a = " + std::string(100000, '['), "x"), Error);
  EXPECT_THROW(parse_toml(std::string(1 << 21, '#'), "x"), Error);
  EXPECT_THROW(parse_toml(std::string("a = \"\0\"", 7), "x"), Error);
  EXPECT_THROW(parse_toml("a = 99999999999999999999", "x"), Error);
}

// The last two once used up the stack.
TEST(Config, RefusesAbsurdNesting) {
  const auto repeated = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  for (const int count : {40, 9999, 32000, 500000}) {
    for (const std::string& text :
         {repeated("a.", count) + "a = 1", "[" + repeated("a.", count) + "a]"}) {
      EXPECT_NE(error_of([&] { parse_toml(text, "deep"); }), "") << count;
    }
    ConfigTable table;
    EXPECT_NE(error_of([&] { apply_override(table, repeated("a.", count) + "a=1"); }), "");
    EXPECT_TRUE(table.empty());
  }
  EXPECT_THAT(error_of([&] { parse_toml(repeated("a.", 32) + "a = 1", "deep"); }),
              HasSubstr("deep:1: nested deeper than 32 levels"));
  EXPECT_EQ(error_of([&] { parse_toml(repeated("a.", 31) + "a = 1", "deep"); }), "");
}

TEST(Config, WhatIsWrittenReadsBackEqual) {
  const std::string toml =
      "steps = 5\nrate = 0.001\ntext = \"a \\\"quoted\\\" \\\\ \\u0007\"\nlist = [1, 2.5, "
      "\"x\"]\nflag = true\n\n[model]\nwidth = 64\n\n[model.mixer]\n\"odd key\" = 1e300\n";
  const ConfigTable table = parse_toml(toml, "a");
  const std::string written = to_toml(table);
  EXPECT_EQ(to_toml(parse_toml(written, "b")), written);
  EXPECT_EQ(canonical_text(parse_toml(written, "b")), canonical_text(table));
}

TEST(Config, OddKeysOfInlineTablesReadBackEqual) {
  const ConfigTable table = parse_toml("list = [{\"b c\" = 1, \"\" = 2}]\n", "first");
  EXPECT_EQ(canonical_text(parse_toml(to_toml(table), "again")), canonical_text(table));
}

TEST(Config, RoundTripsAStruct) {
  Sample sample;
  sample.rank = 31;
  sample.dropout = 1.0 / 3;
  const ConfigTable table = parse_toml(to_toml(write_config(sample)), "a");
  const Sample back = read_config<Sample>(table, "");
  EXPECT_EQ(back.rank, 31);
  EXPECT_EQ(back.dropout, 1.0 / 3);
}

TEST(Config, KeepsTheOrderOfKeys) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : parse_toml("z = 1\na = 2\nm = 3\n", "a")) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("z", "a", "m"));
}

TEST(Config, MergesTablesKeyByKey) {
  ConfigTable base = parse_toml("a = 1\n[t]\nx = 1\ny = 2\n", "base");
  merge(base, parse_toml("a = 5\n[t]\ny = 3\n[u]\nz = 4\n", "over"));
  EXPECT_EQ(canonical_text(base), "a=5\nt.x=1\nt.y=3\nu.z=4\n");
}

TEST(Config, CanonicalTextIgnoresOrderAndSpelling) {
  EXPECT_EQ(canonical_text(parse_toml("b = 0.10\na = 0x10\n", "1")),
            canonical_text(parse_toml("a = 16\nb = 1e-1\n", "2")));
}

TEST(Override, SetsNestedValuesOfEveryType) {
  ConfigTable table = parse_toml("[train]\nsteps = 1\n", "a");
  apply_override(table, "train.steps=100");
  apply_override(table, "train.rate=-1e-3");
  apply_override(table, "train.fast=true");
  apply_override(table, "model.pooling=mean");
  apply_override(table, "data.path=/tmp/some folder/x=y");
  apply_override(table, "list=[1, 2]");
  EXPECT_EQ(canonical_text(table),
            "data.path=\"/tmp/some folder/x=y\"\nlist=[1, 2]\nmodel.pooling=\"mean\"\n"
            "train.fast=true\ntrain.rate=-0.001\ntrain.steps=100\n");
}

TEST(Override, TakesAQuotedString) {
  ConfigTable table;
  apply_override(table, "name=\"12\"");
  EXPECT_EQ(canonical_text(table), "name=\"12\"\n");
}

TEST(Override, RefusesWhatIsNoAssignmentOrNoTable) {
  ConfigTable table = parse_toml("a = 1\n", "a.toml");
  EXPECT_THROW(apply_override(table, "a"), Error);
  EXPECT_THROW(apply_override(table, "=1"), Error);
  EXPECT_THAT(error_of([&] { apply_override(table, "a.b=1"); }), HasSubstr("'a' is an integer"));
}

TEST(Override, RefusesWhatAConfigFileCannotHold) {
  ConfigTable table;
  EXPECT_THAT(error_of([&] { apply_override(table, "data.folder=/tmp/\xFF"); }),
              HasSubstr("is not UTF-8"));
  EXPECT_TRUE(table.empty());
}

TEST(Override, TextThatLooksLikeTomlCannotAddKeys) {
  ConfigTable table;
  apply_override(table, "a=1\nb = 2");
  EXPECT_EQ(canonical_text(table), "a=\"1\\u000Ab = 2\"\n");
}

TEST(Describe, ListsDefaultsRangesAndHelp) {
  const std::vector<FieldInfo> fields = describe_config<Sample>();
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[0].type, "true/false");
  EXPECT_EQ(fields[1].default_value, "256");
  EXPECT_EQ(fields[1].range, ">= 1");
  EXPECT_EQ(fields[2].range, ">= 0, < 1");
  EXPECT_EQ(fields[3].range, "one of cls, mean");
  EXPECT_EQ(fields[3].help, "how positions become one");
}

TEST(NearestName, FindsTyposAndNothingElse) {
  EXPECT_EQ(nearest_name("linfomer", {"linformer", "performer"}), "linformer");
  EXPECT_EQ(nearest_name("zzz", {"linformer", "performer"}), "");
  EXPECT_EQ(nearest_name("lr", {"length", "learning_rate"}), "learning_rate");
  EXPECT_EQ(nearest_name("batchsize", {"batches", "batch_size"}), "batch_size");
  EXPECT_EQ(suggestion("zzz", {"ab", "cd"}), "known: ab, cd");
}

TEST(ConfigFile, ThatIsMissingIsAnError) {
  EXPECT_THAT(error_of([] { parse_toml_file("/no/such.toml"); }), HasSubstr("/no/such.toml"));
}

TEST(ConfigFile, IsReadWhole) {
  const ScratchFolder folder;
  std::ofstream(folder.file("a.toml")) << "a = 1\n";
  EXPECT_EQ(canonical_text(parse_toml_file(folder.file("a.toml"))), "a=1\n");
}

}  // namespace
}  // namespace lra
