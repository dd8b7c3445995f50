#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "data/test_archive.h"
#include "io/atomic_file.h"
#include "io/toml.h"
#include "tasks/all.h"
#include "tasks/text/test_reviews.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::unique_ptr<Task> text_task(const std::string& toml = "") {
  return kTextTask.make(parse_toml(toml, "test"));
}

void import(const std::string& source, const std::string& out) {
  QuietProgress progress;
  text_task()->import({source}, out, progress).writer.publish();
}

TEST(Text, ReadsRawBytesInTheDocumentedOrder) {
  const TestFolder root;
  const std::string base = root.path("aclImdb/");
  write_text(base + "train/pos/2_8.txt", "two\xC3\xA9");
  write_text(base + "train/pos/10_7.txt", "ten");
  write_text(base + "train/neg/5_1.txt", "bad<br />");
  write_text(base + "train/neg/.DS_Store", "left by a file manager");
  write_text(base + "test/neg/0_2.txt", "t");
  write_text(base + "test/pos/0_9.txt", "\x01\xF4\x8F\xBF\xBF");
  import(root.path("."), root.path("data"));
  const Dataset dataset = Dataset::open(root.path("data"));
  const Split train = dataset.split("train"), test = dataset.split("test");
  ASSERT_EQ(train.size(), 3);
  ASSERT_EQ(test.size(), 2);
  const auto text = [](const Split& split, int64_t i) {
    const auto bytes = split.stored_bytes(i);
    return std::string(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(text(train, 0), "bad<br />");
  EXPECT_EQ(text(train, 1), "two\xC3\xA9");
  EXPECT_EQ(text(train, 2), "ten");
  EXPECT_EQ(train.label(0), 0);
  EXPECT_EQ(train.label(2), 1);
  std::vector<int32_t> ids(4);
  EXPECT_EQ(test.read_tokens(1, 0, ids), 5);
  EXPECT_EQ(ids, (std::vector<int32_t>{2, 0xF5, 0x90, 0xC0}));
  EXPECT_EQ(dataset.read_side_file("reviews.txt"),
            "train/neg/5_1.txt\ntrain/pos/2_8.txt\ntrain/pos/10_7.txt\ntest/neg/0_2.txt\n"
            "test/pos/0_9.txt\n");
}

TEST(Text, TheTestSplitHasItsRatings) {
  const TestFolder root;
  const std::string base = root.path("aclImdb/");
  for (const char* name : {"train/pos/0_7.txt", "train/neg/0_1.txt", "test/neg/0_2.txt",
                           "test/neg/1_4.txt", "test/pos/0_9.txt"}) {
    write_text(base + name, name);
  }
  import(root.path("."), root.path("data"));
  const Dataset dataset = Dataset::open(root.path("data"));
  const auto found = text_task()->example_properties(dataset, "test");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "rating");
  EXPECT_THAT(found[0].values, ::testing::ElementsAre("2", "4", "9"));
  EXPECT_TRUE(text_task()->example_properties(dataset, "train").empty());
}

TEST(Text, FolderArchiveAndExportGiveTheSameData) {
  const TestFolder root;
  write_small_imdb(root.path("."), 12);
  import(root.path("aclImdb"), root.path("a"));
  const Dataset a = Dataset::open(root.path("a"));
  text_task()->export_official(a, root.path("out"));
  import(root.path("out"), root.path("b"));
  std::vector<ArchiveItem> entries{
      {.name = "aclImdb/", .type = AE_IFDIR},
      {.name = "aclImdb/README", .content = "read me"},
      {.name = "aclImdb/train/unsup/0_0.txt", .content = "unlabelled"}};
  for (const auto& file : fs::recursive_directory_iterator(root.path("aclImdb"))) {
    if (!file.is_regular_file()) continue;
    entries.push_back({.name = fs::relative(file.path(), root.path(".")).string(),
                       .content = read_file(file.path().string(), 1 << 20)});
  }
  write_test_archive(root.path("c.tar.gz"), entries);
  import(root.path("c.tar.gz"), root.path("c"));
  for (const char* name : {"b", "c"}) {
    const Dataset other = Dataset::open(root.path(name));
    EXPECT_EQ(other.hash(), a.hash()) << name;
    EXPECT_EQ(other.manifest().source_hash, a.manifest().source_hash) << name;
    EXPECT_EQ(other.read_side_file("reviews.txt"), a.read_side_file("reviews.txt")) << name;
  }
  EXPECT_THAT(error_of([&] { text_task()->export_official(a, root.path("out")); }),
              HasSubstr("exists already"));
}

// An encoding that only one class has would tell a model the label.
TEST(Text, OneEncodingIsStoredWhateverTheFilesHave) {
  const TestFolder root;
  write_small_imdb(root.path("plain"), 10);
  fs::copy(root.path("plain"), root.path("other"), fs::copy_options::recursive);
  for (const char* name : {"plain", "other"}) {
    const bool is_other = name == std::string("other");
    write_text(root.path(name) + "/aclImdb/train/pos/0_7.txt",
               is_other ? "\xEF\xBB\xBFone\r\ntwo" : "one\ntwo");
    import(root.path(name), root.path(name) + "/data");
  }
  EXPECT_EQ(Dataset::open(root.path("other/data")).hash(),
            Dataset::open(root.path("plain/data")).hash());
  for (const auto& [text, problem] : std::map<std::string, std::string>{
           {"\xFF\xFEo\u0001", "is UTF-16"},
           {"\xFE\xFF\u0001o", "is UTF-16"},
           {std::string("o\0n\0", 4), "holds zero bytes: it is UTF-16"},
           {"caf\xE9 noir", "is not UTF-8"}}) {
    write_text(root.path("other/aclImdb/train/pos/0_7.txt"), text);
    EXPECT_THAT(error_of([&] { import(root.path("other"), root.path("refused")); }),
                HasSubstr("train/pos/0_7.txt: " + problem));
    EXPECT_FALSE(fs::exists(root.path("refused")));
  }
}

TEST(Text, ValidationIsTheTestSetOrAHeldOutTenth) {
  const TestFolder root;
  write_small_imdb(root.path("."), 50);
  import(root.path("."), root.path("data"));
  const Dataset dataset = Dataset::open(root.path("data"));
  const auto authors = text_task();
  EXPECT_EQ(authors->validation(), "test");
  EXPECT_EQ(authors->split(dataset, "val").size(), 100);
  EXPECT_EQ(authors->split(dataset, "train").size(), 100);
  const auto parts_of = [&](const std::string& toml) {
    std::set<std::string> texts;
    const auto task = text_task("validation = 'heldout'\n" + toml);
    EXPECT_EQ(task->validation(), "heldout");
    EXPECT_EQ(task->split(dataset, "train").size(), 90);
    EXPECT_EQ(task->split(dataset, "test").size(), 100);
    std::set<std::string> val;
    for (const char* name : {"train", "val"}) {
      const Split split = task->split(dataset, name);
      for (int64_t i = 0; i < split.size(); ++i) {
        const auto bytes = split.stored_bytes(i);
        texts.emplace(bytes.begin(), bytes.end());
        if (name == std::string("val")) val.emplace(bytes.begin(), bytes.end());
      }
    }
    EXPECT_EQ(texts.size(), 100U);  // nothing lost, nothing twice
    EXPECT_EQ(val.size(), 10U);
    return val;
  };
  EXPECT_EQ(parts_of(""), parts_of("validation_seed = 0"));
  EXPECT_NE(parts_of(""), parts_of("validation_seed = 1"));
  EXPECT_THAT(error_of([] { text_task("validation = 'own'"); }), HasSubstr("heldout"));
  EXPECT_THAT(error_of([] { text_task("length = 0"); }), HasSubstr("length"));
}

TEST(Text, BaselinesSeeWhatBytesTell) {
  const TestFolder root;
  write_small_imdb(root.path("."), 100);
  import(root.path("."), root.path("data"));
  const auto baselines = text_task()->baselines(Dataset::open(root.path("data")));
  ASSERT_EQ(baselines.size(), 3U);
  EXPECT_EQ(baselines[0].accuracy, 0.5);
  EXPECT_GT(baselines[1].accuracy, 0.9);
}

TEST(Text, ExportTrustsNoName) {
  const TestFolder root;
  write_small_imdb(root.path("."), 1);
  import(root.path("."), root.path("data"));
  const Dataset good = Dataset::open(root.path("data"));
  const auto export_with = [&](const std::string& names) {
    DatasetWriter writer(root.path("forged"), without_files(good.manifest()), 0);
    for (const char* name : {"train", "test"}) {
      writer.begin_split(name);
      const Split split = good.split(name);
      for (int64_t i = 0; i < split.size(); ++i) writer.add(split.label(i), split.stored_bytes(i));
    }
    writer.add_side_file("reviews.txt", names);
    writer.finish();
    const std::string error = error_of([&] {
      text_task()->export_official(Dataset::open(root.path("forged")), root.path("out"));
    });
    fs::remove_all(root.path("forged"));
    fs::remove_all(root.path("out"));
    return error;
  };
  const std::string names = "train/neg/0_1.txt\ntrain/pos/0_1.txt\ntest/neg/0_1.txt\n";
  EXPECT_EQ(export_with(names + "test/pos/0_1.txt\n"), "");
  EXPECT_THAT(export_with(names + "../../test/evil\n"),
              HasSubstr("reviews.txt:4: is not the name"));
  EXPECT_THAT(export_with(names), HasSubstr("fewer names"));
  EXPECT_THAT(export_with(names + "test/neg/1_1.txt\n"), HasSubstr("does not agree"));
  EXPECT_THAT(export_with(names + "test/pos/0_1.txt\ntest/pos/1_1.txt\n"), HasSubstr("more names"));
}

// All 50,000 labelled reviews, as a folder.
TEST(Text, TheRealReviewsAreAsPublished) {
  const char* data = std::getenv("LRA_TEST_DATA");
  if (!data) GTEST_SKIP() << "LRA_TEST_DATA is not set";
  const TestFolder root;
  const auto sources = text_task()->find_sources(data);
  ASSERT_EQ(sources.size(), 1U);
  import(sources[0], root.path("data"));
  const Dataset dataset = Dataset::open(root.path("data"));
  EXPECT_EQ(dataset.hash(), "f2c668d6e35a7629807eddb673ad2f50");
  for (const checks::Fact& fact : text_task()->check(dataset)) {
    EXPECT_TRUE(fact.ok) << fact.name << ": " << fact.value << " (" << fact.detail << ")";
  }
  const auto baselines = text_task()->baselines(dataset);
  EXPECT_EQ(baselines[0].accuracy, 0.5);
  EXPECT_GT(baselines[1].accuracy, 0.57);
  EXPECT_LT(baselines[1].accuracy, 0.72);
}

TEST(TokenText, ShowsBytesAsCharactersOrDigits) {
  EXPECT_EQ(byte_token_text(0), "");
  EXPECT_EQ(byte_token_text(1 + 'a'), "a");
  EXPECT_EQ(byte_token_text(1 + ' '), " ");
  EXPECT_EQ(byte_token_text(1 + '\n'), "\\x0a");
  EXPECT_EQ(byte_token_text(1 + 0x1B), "\\x1b");
  EXPECT_EQ(byte_token_text(1 + 0xE6), "\\xe6");
}

}  // namespace
}  // namespace lra::tasks
