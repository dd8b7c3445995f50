
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/stop_flag.h"
#include "data/test_fixtures.h"
#include "data/text_lines.h"
#include "io/atomic_file.h"
#include "io/toml.h"
#include "tasks/all.h"
#include "tasks/listops/expression.h"
#include "tasks/listops/tsv.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Task> listops_task(const std::string& toml = "") {
  return kListOpsTask.make(parse_toml(toml, "test"));
}

void make(const std::string& out, int64_t num_train = 60, int64_t num_val = 20,
          int64_t num_test = 20) {
  QuietProgress progress;
  listops_task()->make(
      {.out = out, .seed = 1, .num_train = num_train, .num_val = num_val, .num_test = num_test},
      progress);
}

const checks::Fact& fact(const std::vector<checks::Fact>& facts, const std::string& name) {
  for (const checks::Fact& candidate : facts) {
    if (candidate.name == name) return candidate;
  }
  throw std::out_of_range(name);
}

TEST(ListOps, ExportAndImportGiveTheSameData) {
  const TestFolder root;
  make(root.path("a"));
  const Dataset a = Dataset::open(root.path("a"));
  listops_task()->export_official(a, root.path("official"));
  const std::string text = read_file(root.path("official/listops-1000/basic_val.tsv"), 1 << 24);
  EXPECT_TRUE(text.starts_with("Source\tTarget\r\n( ( "));
  EXPECT_TRUE(text.ends_with("\r\n"));
  QuietProgress progress;
  listops_task()->import({root.path("official")}, root.path("c"), progress).writer.publish();
  EXPECT_EQ(Dataset::open(root.path("c")).hash(), a.hash());
  // A length to be fed cuts what is read; it does not limit what is kept.
  listops_task("length = 600")
      ->import({root.path("official")}, root.path("d"), progress)
      .writer.publish();
  EXPECT_EQ(Dataset::open(root.path("d")).hash(), a.hash());
  EXPECT_THAT(error_of([&] { listops_task()->export_official(a, root.path("official")); }),
              HasSubstr("exists already"));
}

TEST(ListOps, FindsTheFilesInEveryKnownLayout) {
  for (const char* layout : {"", "listops-1000/", "lra_release/listops-1000/",
                             "lra_release/lra_release/listops-1000/"}) {
    const TestFolder root;
    EXPECT_TRUE(listops_task()->find_sources(root.path(".")).empty());
    for (const char* split : kSplitNames) {
      write_text(root.path(std::string(layout) + "basic_" + split + ".tsv"), "");
    }
    EXPECT_EQ(listops_task()->find_sources(root.path(".")).size(), 3U) << layout;
  }
}

std::string listops_error(const std::string& content) {
  return error_of(
      [&] { read_listops_tsv(reader_of(content), "basic_val.tsv", {}, [](auto, int) {}); });
}

TEST(ListOpsTsv, AcceptsLineEndsQuotesAndPlainBrackets) {
  const std::string line = "( ( ( [MAX 1 ) 2 ) ] )\t2";
  EXPECT_EQ(listops_error("Source\tTarget\r\n" + line + "\r\n" + line + "\r\n"), "");
  EXPECT_EQ(listops_error("Source\tTarget\n" + line + "\n" + line), "");
  EXPECT_EQ(listops_error("\"Source\"\t\"Target\"\n\"( ( ( [MAX 1 ) 2 ) ] )\"\t\"2\"\n"), "");
  EXPECT_EQ(listops_error("Source\tTarget\n[MAX 1 2 ]\t2\n[MAX 1 2 X\t2\n"), "");
  EXPECT_EQ(listops_error("Source\tTarget\n"), "");
  EXPECT_EQ(listops_error("\xEF\xBB\xBFSource\tTarget\n[MAX 1 2 ]\t2\n\n\r\n"), "");
}

TEST(ListOpsTsv, DoesNotDependOnTheSizeOfBlocks) {
  const std::string good = "Source\tTarget\n[MAX 1 2 ]\t2\n[MIN 3 2 ]\t2\n[MED 1 5 7 ]\t5\n";
  for (size_t block_bytes = 1; block_bytes < 40; ++block_bytes) {
    std::string labels;
    const auto sink = [&](auto, int label) { labels += std::to_string(label); };
    const auto read = [&](const std::string& text) {
      read_listops_tsv(reader_of(text), "x.tsv", {.block_bytes = block_bytes}, sink);
    };
    read(good);
    EXPECT_EQ(labels, "225") << block_bytes;
    EXPECT_THAT(error_of([&] { read(good + "[SM 1 2 ]\t4\n"); }), HasSubstr("x.tsv:5: target is 4"))
        << block_bytes;
  }
}

TEST(ListOpsTsv, NamesFileAndLineOfEveryMistake) {
  const std::string good = "Source\tTarget\r\n( ( ( [MAX 1 ) 2 ) ] )\t2\r\n";
  const auto error = [&](const std::string& line) { return listops_error(good + line + "\r\n"); };
  EXPECT_THAT(error("( ( ( [MAX 1 ) 2 ) ] )\t3"),
              HasSubstr("basic_val.tsv:3: target is 3, the expression evaluates to 2"));
  EXPECT_THAT(error("[AVG 1 2 ]\t1"), HasSubstr(":3: not a ListOps token at character 1"));
  EXPECT_THAT(error("[MAX 1 2\t2"), HasSubstr(":3: operator without a closing bracket"));
  EXPECT_THAT(error("[MAX 1 ]\t1"), HasSubstr("too few arguments"));
  EXPECT_THAT(error("[MAX 1 1 1 1 1 1 1 1 1 1 1 ]\t1"), HasSubstr("too many arguments"));
  EXPECT_THAT(error("( ( [MAX 1 ) 2 ) ] )\t2"), HasSubstr("curried form"));
  EXPECT_THAT(error("[FIRST 1 2 ]\t1"), HasSubstr("operator [FIRST"));
  EXPECT_THAT(error("[MAX 1 2 ]"), HasSubstr("no TAB"));
  EXPECT_EQ(error(""), "");  // a line that is empty at the end
  EXPECT_THAT(error("\r\n[MAX 1 2 ]\t2"), HasSubstr(":3: is empty"));
  EXPECT_THAT(error("[MAX 1 2 ]\t12"), HasSubstr("target is '12'"));
  EXPECT_THAT(error("[MAX 1 2 ]\t\x1b[2J"), HasSubstr("one digit"));
  EXPECT_THAT(error("\t2"), HasSubstr("empty expression"));
  std::string large = "[MAX";
  for (int i = 0; i < 250; ++i) large += " [MAX 1 2 3 4 5 6 7 8 9 9 ]";
  EXPECT_THAT(error(large + " ]\t9"), HasSubstr("tokens; expected at most 2000"));
  EXPECT_THAT(error(std::string(3 << 20, '(')), HasSubstr("bytes"));
  EXPECT_THAT(listops_error("1\t2\n"), HasSubstr(":1: header"));
  EXPECT_THAT(listops_error(""), HasSubstr(":1: header"));
}

TEST(ListOps, CheckFindsWrongTargetsDuplicatesAndLengths) {
  const TestFolder root;
  Manifest manifest;
  manifest.task = "listops";
  manifest.task_version = kListOpsTask.version;
  manifest.source = "imported";
  DatasetWriter writer(root.path("data"), manifest, 0);
  const std::vector<uint8_t> small{kListOpsMax, kListOpsDigit0 + 1, kListOpsDigit0 + 2,
                                   kListOpsClose};
  const std::vector<uint8_t> broken{kListOpsMax, kListOpsDigit0};
  writer.begin_split("train");
  writer.add(2, small);
  writer.add(2, small);
  writer.begin_split("val");
  writer.add(3, small);
  writer.begin_split("test");
  writer.add(10, broken);
  writer.finish();
  const Dataset dataset = Dataset::open(root.path("data"));
  const std::vector<checks::Fact> facts = listops_task()->check(dataset);
  EXPECT_THAT(fact(facts, "examples of train").detail, HasSubstr("not the published size"));
  EXPECT_TRUE(fact(facts, "targets of train").ok);
  EXPECT_EQ(fact(facts, "targets of val").detail,
            "val example 0: label is 3, the expression evaluates to 2");
  EXPECT_THAT(fact(facts, "targets of test").detail, HasSubstr("without a closing bracket"));
  EXPECT_FALSE(fact(facts, "labels of test").ok);
  EXPECT_FALSE(fact(facts, "length of train").ok);
  EXPECT_EQ(fact(facts, "duplicates within train").detail,
            "train example 1 equals train example 0");
  EXPECT_FALSE(fact(facts, "duplicates within train").ok);
  EXPECT_EQ(fact(facts, "duplicates across splits").value, "1");
  EXPECT_THAT(error_of([&] { listops_task()->export_official(dataset, root.path("out")); }),
              HasSubstr("val example 0: is not an expression with its value"));
  EXPECT_FALSE(std::filesystem::exists(root.path("out/listops-1000/basic_val.tsv")));
  EXPECT_THAT(listops_task()->render(dataset.split("test"), 0), HasSubstr("[MAX 0"));
  EXPECT_THAT(listops_task()->render(dataset.split("train"), 0), HasSubstr("MAX = 2\n  1 2\n"));
}

TEST(ListOps, BaselinesAreThoseOfThePublishedPlateaus) {
  const TestFolder root;
  make(root.path("data"), 6000, 0, 3000);
  const auto baselines = listops_task()->baselines(Dataset::open(root.path("data")));
  ASSERT_EQ(baselines.size(), 3U);
  EXPECT_EQ(baselines[0].name, "majority");
  EXPECT_NEAR(baselines[0].accuracy, 0.173, 0.035);
  EXPECT_EQ(baselines[1].name, "root operator");
  EXPECT_NEAR(baselines[1].accuracy, 0.365, 0.045);
  // No place of an expression says more than its first.
  EXPECT_EQ(baselines[2].accuracy, baselines[1].accuracy);
}

// The same trees farther apart: everything but the distances is what it was.
TEST(ListOps, FillerStretchesTheSameTrees) {
  const TestFolder root;
  QuietProgress progress;
  const std::string small = "tree = 'spine'\nmin_length = 0\nmax_depth = 4\n";
  const auto made = [&](const std::string& name, const std::string& toml) {
    listops_task(small + toml)
        ->make({.out = root.path(name), .seed = 1, .num_train = 9, .num_val = 5, .num_test = 5},
               progress);
    return Dataset::open(root.path(name));
  };
  const Dataset near = made("near", ""), far = made("far", "filler = 3");
  const Split of_near = near.split("train"), of_far = far.split("train");
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(of_far.label(i), of_near.label(i));
    const auto tokens = of_far.stored_bytes(i), symbols = of_near.stored_bytes(i);
    ASSERT_EQ(tokens.size(), 4 * symbols.size());
    for (size_t t = 0; t < tokens.size(); ++t) {
      EXPECT_EQ(tokens[t], t % 4 == 0 ? symbols[t / 4] : uint8_t{kListOpsUnknown});
    }
  }
  const auto task = listops_task(small + "filler = 3\nlength = 4000");
  for (const checks::Fact& one : task->check(far)) {
    if (one.name.ends_with("of test")) {
      EXPECT_TRUE(one.ok) << one.name << ": " << one.detail;
    }
  }
  EXPECT_EQ(fact(task->check(far), "targets of test").value, "5 of 5 right");
  EXPECT_THAT(task->render(of_far, 0), HasSubstr("tokens\n"));
  EXPECT_THAT(error_of([&] { task->export_official(far, root.path("out")); }),
              HasSubstr("task.filler"));
  EXPECT_THAT(error_of([&] { listops_task(small)->refuse_other_settings(far); }),
              HasSubstr("task.filler=3"));
  EXPECT_THAT(error_of([&] { task->refuse_other_settings(near); }), HasSubstr("task.filler=0"));
  EXPECT_THAT(error_of([&] { listops_task("min_args = 11"); }), HasSubstr("task.min_args"));
}

TEST(ListOps, AStopRequestLeavesNothingHalfWritten) {
  const TestFolder root;
  raise_stop_flag(SIGINT);
  EXPECT_THAT(error_of([&] { make(root.path("data")); }), HasSubstr("stopped"));
  clear_stop_flag();
  EXPECT_TRUE(std::filesystem::is_empty(root.path(".")));
}

TEST(ListOps, WrongRequestsAreRefused) {
  EXPECT_THAT(error_of([] { listops_task("min_length = 1999"); }), HasSubstr("min_length"));
  EXPECT_THAT(error_of([] { listops_task("lenght = 3"); }),
              HasSubstr("did you mean 'task.length'"));
  const TestFolder root;
  EXPECT_THAT(error_of([&] { make(root.path("data"), -1); }), HasSubstr("-1 examples"));
  QuietProgress progress;
  EXPECT_THAT(error_of([&] { listops_task()->import({root.path(".")}, root.path("x"), progress); }),
              HasSubstr("no official ListOps files"));
}

}  // namespace
}  // namespace lra::tasks
