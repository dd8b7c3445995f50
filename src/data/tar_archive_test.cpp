#include "data/tar_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/error.h"
#include "base/rng.h"
#include "data/fetch.h"
#include "data/new_folder.h"
#include "data/test_archive.h"
#include "data/test_fixtures.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

using ::testing::HasSubstr;

// Error of reading an archive to its end.
std::string error_of_file(const std::string& path) {
  return error_of([&] {
    TarArchive archive(path, "a test");
    while (archive.next()) {
      if (archive.is_file()) archive.content(uint64_t{1} << 30);
    }
  });
}

// The same of one with these entries.
std::string read_error(const std::vector<ArchiveItem>& items) {
  const TestFolder root;
  write_test_archive(root.path("a.tar.gz"), items);
  return error_of_file(root.path("a.tar.gz"));
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

using AddFilter = int (*)(archive*);

// `bytes` as a packed file.
std::string packed(const std::string& bytes, AddFilter add_filter, const TestFolder& root) {
  const std::string path = root.path("packed");
  archive* handle = archive_write_new();
  EXPECT_EQ(add_filter(handle), ARCHIVE_OK);
  archive_write_set_format_raw(handle);
  EXPECT_EQ(archive_write_open_filename(handle, path.c_str()), ARCHIVE_OK);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(handle, entry);
  archive_write_data(handle, bytes.data(), bytes.size());
  archive_entry_free(entry);
  archive_write_close(handle);
  archive_write_free(handle);
  return read_file(path, uint64_t{1} << 30);
}

std::string unpacked(const std::string& path) {
  std::string bytes(1 << 20, '\0');
  gzFile file = gzopen(path.c_str(), "rb");
  bytes.resize(static_cast<size_t>(gzread(file, bytes.data(), 1 << 20)));
  gzclose(file);
  return bytes;
}

// Error of reading these bytes as an archive.
std::string error_of_bytes(const std::string& bytes, const TestFolder& root) {
  write_text(root.path("b.tar"), bytes);
  return error_of_file(root.path("b.tar"));
}

TEST(TarArchive, TheEndMustBeMarkedAndNothingFollowIt) {
  const TestFolder root;
  write_test_archive(root.path("a.tar.gz"),
                     {{.name = "a", .content = "one"}, {.name = "b", .content = "two"}});
  // A header and a block of content each, then zeros.
  const std::string tar = unpacked(root.path("a.tar.gz"));
  ASSERT_GE(tar.size(), 2048U + 1024U);
  for (const AddFilter filter : {archive_write_add_filter_none, archive_write_add_filter_gzip,
                                 archive_write_add_filter_bzip2, archive_write_add_filter_xz}) {
    const auto error = [&](const std::string& bytes) {
      return error_of_bytes(packed(bytes, filter, root), root);
    };
    EXPECT_EQ(error(tar), "");
    EXPECT_EQ(error(tar.substr(0, 2048 + 512)), "") << "one block of zeros is a mark";
    EXPECT_THAT(error(tar.substr(0, 2048)), HasSubstr("cut off"));
    EXPECT_THAT(error(tar.substr(0, 1024)), HasSubstr("cut off"));
    EXPECT_THAT(error(tar.substr(0, 1700)), HasSubstr("b.tar"));
    std::string zeroed = tar;
    zeroed.replace(1024, 512, 512, '\0');
    EXPECT_THAT(error(zeroed), HasSubstr("continues after its end"));
    EXPECT_THAT(error(tar + "x"), HasSubstr("continues after its end"));
    EXPECT_THAT(error(tar + tar), HasSubstr("continues after its end"));
  }
}

TEST(TarArchive, AFlippedBitInAGzipFileIsNoticed) {
  const TestFolder root;
  RandomStream random(3);
  std::string content(20000, ' ');
  for (char& c : content) c = static_cast<char>('a' + random.below(26));
  write_test_archive(root.path("a.tar.gz"), {{.name = "a", .content = content}});
  const std::string good = read_file(root.path("a.tar.gz"), uint64_t{1} << 30);
  EXPECT_EQ(error_of_bytes(good, root), "");
  // Changes bytes behind the header of the gzip file, whose time and system are ignored.
  for (size_t at = 10; at < good.size(); at += at < good.size() - 20 ? 97 : 1) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_NE(error_of_bytes(bad, root), "") << at;
  }
  for (const size_t missing : {1, 8, 9, 100}) {
    EXPECT_NE(error_of_bytes(good.substr(0, good.size() - missing), root), "") << missing;
  }
  EXPECT_EQ(error_of_bytes(good + std::string(1000, '\0'), root), "") << "padding";
  EXPECT_THAT(error_of_bytes(good + "x", root), HasSubstr("continues after its end"));
  EXPECT_THAT(error_of_bytes(good + good, root), HasSubstr("continues after its end"));
}

TEST(TarArchive, AGzipFileMayHaveSeveralMembers) {
  const TestFolder root;
  write_test_archive(root.path("a.tar.gz"), {{.name = "a", .content = "one"}});
  const std::string tar = unpacked(root.path("a.tar.gz"));
  const auto part = [&](size_t first, size_t end) {
    return packed(tar.substr(first, end - first), archive_write_add_filter_gzip, root);
  };
  EXPECT_EQ(error_of_bytes(part(0, 700) + part(700, tar.size()), root), "");
}

TEST(TarArchive, APipeAndAMissingFileAreRefused) {
  const TestFolder root;
  ASSERT_EQ(::mkfifo(root.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { TarArchive(root.path("pipe"), "a test"); }),
              HasSubstr("is not a file"));
  EXPECT_THAT(error_of([&] { TarArchive(root.path("none"), "a test"); }),
              HasSubstr("there is no such file; expected a test"));
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

TEST(UnpackFolder, WhatLiesThereIsTakenOnlyWhenItIsOfThisArchive) {
  const TestFolder root;
  const std::string archive = root.path("a.tar.gz");
  const auto unpack = [&] { unpack_folder(archive, "data", root.path("out")); };
  write_test_archive(archive, {{.name = "data/a", .content = "1"}});
  unpack();
  unpack();
  std::filesystem::remove(archive);
  write_test_archive(archive, {{.name = "data/a", .content = "another file"}});
  EXPECT_THAT(error_of(unpack), HasSubstr("was not unpacked from " + archive + " as it is now"));
  std::filesystem::remove_all(root.path("out/data"));
  unpack();
  EXPECT_EQ(std::filesystem::file_size(root.path("out/data/a")), 12U);
  // Unpacked by hand, perhaps the other one of two folders of this name.
  std::filesystem::remove(root.path("out/data/.lra_archive"));
  EXPECT_THAT(error_of(unpack), HasSubstr("remove it"));
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
              HasSubstr("is in the place of another one"));
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
    EXPECT_FALSE(std::filesystem::exists(partial_of(root.path("out/data")))) << bad.name;
  }
}

}  // namespace
}  // namespace lra
