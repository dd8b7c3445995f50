#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "io/atomic_file.h"
#include "io/toml.h"
#include "tasks/all.h"
#include "tasks/retrieval/pair_files.h"
#include "tasks/retrieval/test_pairs.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kSmall = "num_train = 100\nnum_val = 40\nnum_test = 40\n";

std::unique_ptr<Task> retrieval_task(const std::string& toml = kSmall) {
  return kRetrievalTask.make(parse_toml(toml, "test"));
}

Dataset import(const std::vector<std::string>& sources, const std::string& out) {
  QuietProgress progress;
  retrieval_task()->import(sources, out, progress).writer.publish();
  return Dataset::open(out);
}

std::string text_of(const Split& split, int64_t example, int64_t tower) {
  const auto bytes = split.stored_bytes(example, tower);
  return {bytes.begin(), bytes.end()};
}

void write_pairs(const std::string& root, const std::string& train, const std::string& other) {
  write_text(root + "/new_aan_pairs.train.tsv", train);
  for (const char* split : {"eval", "test"}) {
    write_text(root + "/new_aan_pairs." + split + ".tsv", other);
  }
}

TEST(Retrieval, AFileWithoutPairsIsNoData) {
  const TestFolder root;
  write_pairs(root.path("raw"), "1\ta\tb\tp\tq\n", "");
  EXPECT_THAT(error_of([&] { import({root.path("raw")}, root.path("data")); }),
              HasSubstr("no usable example for the split"));
  EXPECT_FALSE(std::filesystem::exists(root.path("data")));
}

// The cut may fall behind a CR, which an end of line would swallow.
TEST(Retrieval, ATextThatEndsWithACarriageReturnSurvivesExport) {
  const TestFolder root;
  write_pairs(root.path("raw"), "1\ta\tb\tp\t" + std::string(9999, 'x') + "\rmore\n",
              "0\tc\td\tp\r\tq\r\r\n");
  const Dataset dataset = import({root.path("raw")}, root.path("data"));
  EXPECT_EQ(text_of(dataset.split("train"), 0, 1).back(), '\r');
  EXPECT_EQ(text_of(dataset.split("val"), 0, 1), "q\r");
  retrieval_task()->export_official(dataset, root.path("out"));
  EXPECT_EQ(import({root.path("out")}, root.path("again")).hash(), dataset.hash());
}

TEST(Retrieval, StoresBothTextsCutAtTenThousandBytes) {
  const TestFolder root;
  const std::string raw = root.path("raw");
  write_pairs(raw, "1.0\ta\tb\t" + std::string(10001, 'x') + "\t\xFF\n", "0\tc\td\tp\tq\n");
  const Dataset dataset = import({raw}, root.path("data"));
  const Split train = dataset.split("train");
  ASSERT_EQ(train.size(), 1);
  EXPECT_EQ(train.label(0), 1);
  EXPECT_EQ(text_of(train, 0, 0), std::string(10000, 'x'));
  std::vector<int32_t> ids(1);
  EXPECT_EQ(train.read_tokens(0, 1, ids), 1);
  EXPECT_EQ(ids[0], 256);
  EXPECT_EQ(dataset.split("val").label(0), 0);
  EXPECT_EQ(text_of(dataset.split("val"), 0, 1), "q");
  EXPECT_EQ(dataset.read_side_file("new_aan_pairs.train.only_ids.tsv"), "1.0\ta\tb\n");
  const TaskShape shape = retrieval_task("length = 1234")->shape();
  EXPECT_EQ(shape.length, 1234);
  EXPECT_EQ(shape.num_towers, 2);
  EXPECT_EQ(shape.vocabulary, 257);
  EXPECT_THAT(error_of([] { retrieval_task("length = 10001"); }), HasSubstr("length"));
}

TEST(Retrieval, ExportGivesTheFilesBackByteForByte) {
  const TestFolder root;
  write_small_pairs(root.path("raw"));
  const Dataset dataset = import({root.path("raw")}, root.path("data"));
  retrieval_task()->export_official(dataset, root.path("out"));
  for (const char* split : {"train", "eval", "test"}) {
    const std::string name = std::string("/new_aan_pairs.") + split + ".tsv";
    EXPECT_EQ(read_file(root.path("out") + name, 1 << 20),
              read_file(root.path("raw") + name, 1 << 20));
  }
  EXPECT_EQ(import({root.path("out")}, root.path("again")).hash(), dataset.hash());
  EXPECT_THAT(error_of([&] { retrieval_task()->export_official(dataset, root.path("out")); }),
              HasSubstr("exists already"));
}

// The files of ids and the texts, as a folder or as lines, give the same data as five columns.
void expect_join_gives(const Dataset& dataset, const TestFolder& root) {
  std::string lines;
  std::set<std::string> seen;
  for (const char* split : {"train", "eval", "test"}) {
    const std::string name = std::string("new_aan_pairs.") + split + ".only_ids.tsv";
    const std::string ids = dataset.read_side_file(name);
    write_text(root.path("ids/" + name), ids);
    const Split examples = dataset.split(split == std::string("eval") ? "val" : split);
    int64_t example = 0;
    read_pairs(root.path("ids/" + name), 3, [&](const PairLine& pair) {
      int64_t tower = 0;
      for (const std::string_view id : {pair.id1, pair.id2}) {
        const std::string text = text_of(examples, example, tower++);
        if (!seen.emplace(id).second) continue;
        lines += std::string(id) + "\t" + text + "\n";
        write_text(root.path("texts/" + std::string(id) + ".txt"), text);
      }
      ++example;
    });
  }
  write_text(root.path("texts.tsv"), lines);
  for (const char* texts : {"texts", "texts.tsv"}) {
    const Dataset joined =
        import({root.path("ids"), root.path(texts)}, root.path(std::string("joined-") + texts));
    EXPECT_EQ(joined.hash(), dataset.hash()) << texts;
    EXPECT_EQ(joined.manifest().source_hash, dataset.manifest().source_hash) << texts;
  }
}

TEST(Retrieval, IdsAndTextsAreJoined) {
  const TestFolder root;
  write_small_pairs(root.path("raw"));
  expect_join_gives(import({root.path("raw")}, root.path("data")), root);
  EXPECT_THAT(error_of([&] { import({root.path("ids")}, root.path("x")); }),
              HasSubstr("second source"));
  EXPECT_THAT(error_of([&] {
                import({root.path("raw"), root.path("texts")}, root.path("x"));
              }),
              HasSubstr("one source"));
  EXPECT_THAT(error_of([&] { import({root.path("texts")}, root.path("x")); }),
              HasSubstr("holds no pairs"));
  fs::remove(root.path("texts/P3.txt"));
  EXPECT_THAT(error_of([&] {
                import({root.path("ids"), root.path("texts")}, root.path("x"));
              }),
              HasSubstr("train.only_ids.tsv:2: paper 'P3' has no text"));
  EXPECT_FALSE(fs::exists(root.path("x")));
}

TEST(Retrieval, ChecksCountsTextsAndDuplicates) {
  const TestFolder root;
  write_pairs(root.path("raw"), "1\ta\tb\tx\t\n1\ta\tb\tx\t\n", "0\tc\td\tp\tq\n");
  const Dataset dataset = import({root.path("raw")}, root.path("data"));
  std::map<std::string, checks::Fact> facts;
  for (const checks::Fact& fact :
       retrieval_task("num_train = 2\nnum_val = 1\nnum_test = 2")->check(dataset)) {
    facts[fact.name] = fact;
  }
  EXPECT_TRUE(facts.at("examples of train").ok);
  EXPECT_FALSE(facts.at("examples of test").ok);
  EXPECT_FALSE(facts.at("documents of train").ok);
  EXPECT_EQ(facts.at("documents of train").detail, "train example 0 has an empty text");
  EXPECT_EQ(facts.at("duplicates within train").value, "1");
  EXPECT_EQ(facts.at("duplicates across splits").detail, "test example 0 equals val example 0");
}

TEST(Retrieval, ByteBaselineReadsBothTexts) {
  const TestFolder root;
  write_small_pairs(root.path("raw"));
  const auto baselines = retrieval_task()->baselines(import({root.path("raw")}, root.path("data")));
  ASSERT_EQ(baselines.size(), 3U);
  EXPECT_EQ(baselines[0].accuracy, 0.5);
  EXPECT_GT(baselines[1].accuracy, 0.9);  // the letter that tells stands in the second text
}

TEST(Retrieval, ExportTrustsNoSideFile) {
  const TestFolder root;
  write_pairs(root.path("raw"), "1\ta\tb\tx\ty\n", "0\tc\td\tp\tq\n");
  const Dataset good = import({root.path("raw")}, root.path("data"));
  const auto export_with = [&](const std::string& ids) {
    DatasetWriter writer(root.path("forged"), without_files(good.manifest()), 0);
    for (const char* name : {"train", "val", "test"}) {
      writer.begin_split(name);
      const Split split = good.split(name);
      writer.add(split.label(0), std::array{split.stored_bytes(0, 0), split.stored_bytes(0, 1)});
    }
    writer.add_side_file("new_aan_pairs.train.only_ids.tsv", ids);
    for (const char* name : {"eval", "test"}) {
      writer.add_side_file(std::string("new_aan_pairs.") + name + ".only_ids.tsv", "0\tc\td\n");
    }
    writer.finish();
    const std::string error = error_of([&] {
      retrieval_task()->export_official(Dataset::open(root.path("forged")), root.path("out"));
    });
    fs::remove_all(root.path("forged"));
    fs::remove_all(root.path("out"));
    return error;
  };
  EXPECT_EQ(export_with("1\ta\tb\n"), "");
  EXPECT_THAT(export_with(""), HasSubstr("only_ids.tsv:1: there are fewer lines"));
  EXPECT_THAT(export_with("1\ta\tb\n1\ta\tb\n"), HasSubstr("only_ids.tsv:2: there are more lines"));
  EXPECT_THAT(export_with("0\ta\tb\n"), HasSubstr("does not agree"));
  EXPECT_THAT(export_with("1\ta\n"), HasSubstr("does not agree"));
}

// Pairs of 1,551 ACL papers in the official format; not the official pairs.
TEST(Retrieval, RealPapersGoInOutAndInAgain) {
  const char* data = std::getenv("LRA_TEST_DATA");
  if (!data) GTEST_SKIP() << "LRA_TEST_DATA is not set";
  const TestFolder root;
  const auto task = retrieval_task("num_train = 4306\nnum_val = 688\nnum_test = 542");
  const auto sources = task->find_sources(data);
  ASSERT_EQ(sources.size(), 1U);
  const Dataset dataset = import(sources, root.path("data"));
  for (const checks::Fact& fact : task->check(dataset)) {
    EXPECT_TRUE(fact.ok) << fact.name << ": " << fact.value << " (" << fact.detail << ")";
  }
  task->export_official(dataset, root.path("out"));
  EXPECT_EQ(import({root.path("out")}, root.path("again")).hash(), dataset.hash());
  expect_join_gives(dataset, root);
  const auto baselines = task->baselines(dataset);
  EXPECT_NEAR(baselines[0].accuracy, 0.5, 0.01);
  EXPECT_NEAR(baselines[1].accuracy, 0.5, 0.1);  // counting bytes does not tell citations
}

}  // namespace
}  // namespace lra::tasks
