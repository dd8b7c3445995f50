#include "tasks/text/reviews.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/rng.h"
#include "base/stop_flag.h"
#include "base/utf8.h"
#include "data/test_archive.h"
#include "io/atomic_file.h"
#include "tasks/text/test_reviews.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string review_error(const std::string& source) {
  QuietProgress progress;
  return error_of([&] {
    const Reviews reviews = open_reviews(source, progress);
    for (size_t i = 0; i < reviews.keys.size(); ++i) reviews.text(i);
  });
}

std::string archive_error(const std::vector<ArchiveItem>& items) {
  const TestFolder root;
  write_test_archive(root.path("x.tar.gz"), items);
  const std::string error = review_error(root.path("x.tar.gz"));
  // Whatever the archive says, nothing but itself is there afterwards.
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator(root.path(".")),
                          fs::recursive_directory_iterator()),
            1);
  return error;
}

TEST(Reviews, HostileArchivesAreRefused) {
  const ArchiveItem good{.name = "aclImdb/train/pos/0_9.txt", .content = "good"};
  EXPECT_EQ(archive_error({good}), "");
  EXPECT_THAT(archive_error({good, {.name = "../../etc/x", .content = "x"}}),
              HasSubstr("leads out of the archive"));
  EXPECT_THAT(archive_error({good, {.name = "/etc/train/pos/1_1.txt", .content = "x"}}),
              HasSubstr("leads out of the archive"));
  EXPECT_THAT(archive_error({good, {.name = "a/../train/pos/1_1.txt", .content = "x"}}),
              HasSubstr("leads out of the archive"));
  EXPECT_THAT(archive_error(
                  {{.name = "aclImdb/train/pos/1_1.txt", .type = AE_IFLNK, .link = "/etc/passwd"}}),
              HasSubstr("is a link"));
  EXPECT_THAT(archive_error({good,
                             {.name = "aclImdb/train/pos/1_1.txt",
                              .link = "aclImdb/train/pos/0_9.txt",
                              .hard = true}}),
              HasSubstr("is a link"));
  EXPECT_THAT(archive_error({{.name = "fifo", .type = AE_IFIFO}}), HasSubstr("special file"));
  EXPECT_THAT(archive_error({{.name = "train/pos/1_1.txt", .content = std::string(2 << 20, 'x')}}),
              HasSubstr("over 1 MiB"));
  EXPECT_THAT(archive_error({good, good}), HasSubstr("the same number"));
  EXPECT_THAT(archive_error({good, {.name = "aclImdb/train/pos/1_9.text", .content = "x"}}),
              HasSubstr("train/pos/1_9.text: is not the name of a review"));
  EXPECT_THAT(archive_error({{.name = "README", .content = "nothing else"}}),
              HasSubstr("holds no reviews"));
}

// A plain tar header that claims eight gigabytes, with nothing behind it.
TEST(Reviews, AbsurdSizesAreRefusedBeforeAnythingIsRead) {
  const TestFolder root;
  std::string header(512, '\0');
  header.replace(0, 10, "big/x.data");
  header.replace(100, 7, "0000644");
  header.replace(124, 11, "77777777777");
  header.replace(148, 8, 8, ' ');
  header[156] = '0';
  header.replace(257, 5, "ustar");
  header.replace(263, 2, "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  header.replace(148, 7, text, 7);
  write_text(root.path("x.tar"), header + std::string(4096, '\0'));
  EXPECT_THAT(review_error(root.path("x.tar")), HasSubstr("absurd size"));
}

TEST(Reviews, LinksToFilesAreReadFromAFolder) {
  const TestFolder root;
  write_small_imdb(root.path("."), 6);
  fs::rename(root.path("aclImdb"), root.path("stored"));
  for (const auto& file : fs::recursive_directory_iterator(root.path("stored"))) {
    if (!file.is_regular_file()) continue;
    const fs::path link = root.path("aclImdb") / fs::relative(file.path(), root.path("stored"));
    fs::create_directories(link.parent_path());
    fs::create_symlink(file.path(), link);
  }
  EXPECT_EQ(review_error(root.path("aclImdb")), "");
  fs::create_symlink("nowhere", root.path("aclImdb/train/pos/99_9.txt"));
  EXPECT_THAT(review_error(root.path("aclImdb")), HasSubstr("a link to nothing"));
}

TEST(Reviews, DamagedArchivesAreRefused) {
  const TestFolder root;
  write_small_imdb(root.path("."), 6);
  std::vector<ArchiveItem> entries;
  for (const auto& file : fs::recursive_directory_iterator(root.path("aclImdb"))) {
    if (file.is_regular_file()) {
      entries.push_back({.name = fs::relative(file.path(), root.path(".")).string(),
                         .content = read_file(file.path().string(), 1 << 20)});
    }
  }
  write_test_archive(root.path("good.tar.gz"), entries);
  const std::string good = read_file(root.path("good.tar.gz"), 1 << 20);
  for (size_t size = 0; size + 64 < good.size(); size += good.size() / 40) {
    write_text(root.path("bad.tar.gz"), good.substr(0, size));
    EXPECT_NE(review_error(root.path("bad.tar.gz")), "") << size;
  }
  write_text(root.path("bad.tar.gz"), "no archive at all");
  EXPECT_NE(review_error(root.path("bad.tar.gz")), "");
  EXPECT_THAT(review_error(root.path("none.tar.gz")), HasSubstr("no such file"));
}

// They have to be in memory at a time. A folder of as many is read as it is written.
TEST(Reviews, ArchivesLargerThanMemoryAllowsAreRefused) {
  std::string text(size_t{1} << 20, 'x');  // packed too well it would be refused as a bomb
  RandomStream random(0);
  for (size_t i = 0; i < text.size() / 16; ++i) text[i] = static_cast<char>(' ' + random.below(95));
  std::vector<ArchiveItem> items;
  for (int i = 0; i < 97; ++i) {
    items.push_back({.name = "train/pos/" + std::to_string(i) + "_9.txt", .content = text});
  }
  EXPECT_THAT(archive_error(items), HasSubstr("unpack it and import the folder"));
}

TEST(Reviews, OddFoldersAreRefused) {
  const TestFolder root;
  write_small_imdb(root.path("."), 2);
  write_text(root.path("aclImdb/train/pos/notes.txt"), "x");
  EXPECT_THAT(review_error(root.path(".")), HasSubstr("notes.txt: is not the name of a review"));
  fs::remove(root.path("aclImdb/train/pos/notes.txt"));
  write_text(root.path("aclImdb/train/pos/0_8.txt"), "x");
  EXPECT_THAT(review_error(root.path(".")), HasSubstr("the same number"));
  fs::remove_all(root.path("aclImdb/test/neg"));
  EXPECT_THAT(review_error(root.path(".")), HasSubstr("no such folder"));
  raise_stop_flag(SIGINT);
  fs::create_directories(root.path("aclImdb/test/neg"));
  EXPECT_THAT(review_error(root.path(".")), HasSubstr("stopped"));
  clear_stop_flag();
}

TEST(Reviews, SwappedClassesAreRefused) {
  const TestFolder root;
  for (const char* split : {"train", "test"}) {
    const bool is_swapped = split == std::string("test");
    write_text(root.path(std::string("aclImdb/") + split + "/neg/0_3.txt"), "bad");
    write_text(
        root.path(std::string("aclImdb/") + split + "/pos/0_" + (is_swapped ? "2" : "8") + ".txt"),
        "good");
  }
  EXPECT_THAT(review_error(root.path(".")),
              HasSubstr("the reviews of test/neg have higher ratings than those of test/pos"));
  EXPECT_THAT(review_error(root.path("aclImdb/train")), HasSubstr("name the folder above"));
}

TEST(Reviews, ReviewNamesAreReadExactly) {
  ReviewKey key;
  ASSERT_TRUE(parse_review_path("x/aclImdb/test/pos/12499_10.txt", key));
  EXPECT_EQ(key, (ReviewKey{.split = 1, .label = 1, .id = 12499, .rating = 10}));
  EXPECT_EQ(review_path(key), "test/pos/12499_10.txt");
  for (const char* bad :
       {"", "0_3.txt", "neg/0_3.txt", "train/unsup/0_3.txt", "train/neg/03.txt", "train/neg/_3.txt",
        "train/neg/0_.txt", "train/neg/00_3.txt", "train/neg/-1_3.txt", "train/neg/0_3.txt.bak",
        "train/neg/0_3_4.txt", "train/neg/9999999999_3.txt", "train/neg/0_-0.txt",
        "train/neg/-0_3.txt", "train/neg/0x_3.txt", "dev/neg/0_3.txt"}) {
    EXPECT_FALSE(parse_review_path(bad, key)) << bad;
  }
}

TEST(Utf8, AcceptsWhatTheStandardAllowsAndNothingElse) {
  const auto ok = [](const std::string& text) { return is_utf8(std::string_view(text)); };
  for (const char* good : {"", "abc", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                           "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(ok(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
        "\xF0\x80\x80\x80", "\xFF", "\xE2\x82", "\xC3(", "\xE2\x82(", "\xF0\x9F\x98"}) {
    EXPECT_FALSE(ok(bad)) << bad;
  }
}

}  // namespace
}  // namespace lra::tasks
