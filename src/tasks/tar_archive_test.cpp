#include "tasks/tar_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tasks/fetch.h"
#include "tasks/test_archive.h"
#include "tasks/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

// What reading an archive with these entries to the end says.
std::string read_error(const std::vector<ArchiveItem>& items) {
  const TestFolder root;
  write_test_archive(root.path("a.tar.gz"), items);
  return error_of([&] {
    TarArchive archive(root.path("a.tar.gz"), "a test");
    while (archive.next()) {
      if (archive.is_file()) archive.content(uint64_t{1} << 30);
    }
  });
}

TEST(TarArchive, NamesWithControlCharactersAreRefused) {
  EXPECT_EQ(read_error({{.name = "a/b.txt", .content = "x"}}), "");
  for (const char* name : {"a\nb", "a\x1b[31mb", "a\x7f"}) {
    EXPECT_THAT(read_error({{.name = name, .content = "x"}}), HasSubstr("control characters"));
  }
  EXPECT_THAT(read_error({{.name = std::string(2000, 'a'), .content = "x"}}),
              HasSubstr("over-long"));
}

TEST(TarArchive, MoreThanAHundredTimesItsSizeIsRefused) {
  const std::string zeros(size_t{40} << 20, '\0');
  EXPECT_EQ(read_error({{.name = "a", .content = zeros}}), "");
  EXPECT_THAT(read_error({{.name = "a", .content = zeros}, {.name = "b", .content = zeros}}),
              HasSubstr("too much for its size"));
}

TEST(UnpackFolder, WritesTheFilesBelowTheFolderAndNothingElse) {
  const TestFolder root;
  write_test_archive(root.path("a.tar.gz"), {{.name = "top/data/one.tsv", .content = "1"},
                                             {.name = "top/data/deep/two.tsv", .content = "22"},
                                             {.name = "top/other/three.tsv", .content = "333"}});
  const std::string out = unpack_folder(root.path("a.tar.gz"), "data", root.path("out"));
  EXPECT_EQ(out, root.path("out/data"));
  EXPECT_EQ(std::filesystem::file_size(out + "/one.tsv"), 1U);
  EXPECT_EQ(std::filesystem::file_size(out + "/deep/two.tsv"), 2U);
  EXPECT_FALSE(std::filesystem::exists(root.path("out/other")));
}

TEST(UnpackFolder, TakesOneOfTwoFoldersByItsPath) {
  const TestFolder root;
  write_test_archive(root.path("a.tar.gz"),
                     {{.name = "top/data/one.tsv", .content = "outer"},
                      {.name = "top/top/data/one.tsv", .content = "inner!"}});
  const std::string out = unpack_folder(root.path("a.tar.gz"), "top/top/data", root.path("out"));
  EXPECT_EQ(out, root.path("out/data"));
  EXPECT_EQ(std::filesystem::file_size(out + "/one.tsv"), 6U);
  EXPECT_THAT(error_of([&] { unpack_folder(root.path("a.tar.gz"), "data", root.path("both")); }),
              HasSubstr("stands where another one does"));
}

TEST(UnpackFolder, RefusesASecondEntryInTheSamePlaceAndLeavesNoFolder) {
  const ArchiveItem good{.name = "data/a", .content = "1"};
  for (const ArchiveItem& bad : {good, ArchiveItem{.name = "data/a/b", .content = "2"},
                                 ArchiveItem{.name = "data/c/../../../x", .content = "2"},
                                 ArchiveItem{.name = "data/l", .type = AE_IFLNK, .link = "/etc"}}) {
    const TestFolder root;
    std::filesystem::create_directories(root.path("out"));
    write_test_archive(root.path("a.tar.gz"), {good, bad});
    EXPECT_NE(error_of([&] { unpack_folder(root.path("a.tar.gz"), "data", root.path("out")); }), "")
        << bad.name;
    EXPECT_FALSE(std::filesystem::exists(root.path("out/data"))) << bad.name;
    EXPECT_FALSE(std::filesystem::exists(root.path("out/data.part"))) << bad.name;
  }
}

}  // namespace
}  // namespace lra::tasks
