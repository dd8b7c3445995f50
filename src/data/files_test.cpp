#include "data/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_fixtures.h"

namespace lra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Files, WhatOtherSystemsLeaveIsClutter) {
  for (const char* name : {".DS_Store", "._a.png", ".git", "desktop.ini", "Desktop.ini",
                           "Thumbs.db", "ehthumbs.db", "__MACOSX", "Icon\r"}) {
    EXPECT_TRUE(is_clutter(name)) << name;
    EXPECT_TRUE(has_clutter(std::string("imgs/") + name)) << name;
    EXPECT_TRUE(has_clutter(std::string(name) + "/0.png")) << name;
  }
  for (const char* name : {"a.png", "thumbs", "readme.html", "0_10.txt"}) {
    EXPECT_FALSE(is_clutter(name)) << name;
    EXPECT_FALSE(has_clutter(std::string("./imgs/../") + name)) << name;
  }
}

TEST(Files, NamesOfDataAreSortedWithoutClutter) {
  const TestFolder root;
  for (const char* name : {"b", "a", ".hidden", "Thumbs.db"}) write_text(root.path(name), "");
  EXPECT_THAT(data_names_in(root.path(".")), ElementsAre("a", "b"));
  EXPECT_THAT(data_names_in(root.path("none")), ElementsAre());
}

TEST(Files, EndingsAreFoundInAnyCase) {
  EXPECT_TRUE(has_ending("a/b.PNG", ".png"));
  EXPECT_TRUE(has_ending("b.Png", ".png"));
  EXPECT_FALSE(has_ending("png", ".png"));
}

TEST(FindFileSet, TakesTheFirstFolderThatHasAll) {
  const TestFolder root;
  const FileSet set{.title = "the files", .folders = {".", "below"}, .files = {"x", "y"}};
  EXPECT_THAT(find_file_set(root.path("none"), set), ElementsAre());
  EXPECT_THAT(find_file_set(root.path(""), set), ElementsAre());
  write_text(root.path("x"), "");
  EXPECT_THAT(error_of([&] { find_file_set(root.path("."), set); }),
              HasSubstr("/.: holds some of the files, not all: 'y' is missing; expected 'x' "
                        "and 'y'; complete"));
  for (const char* name : {"below/x", "below/y"}) write_text(root.path(name), "");
  EXPECT_THAT(find_file_set(root.path("."), set),
              ElementsAre(root.path("below/x"), root.path("below/y")));
  // A folder of that name is not a file, although it was meant to be one.
  std::filesystem::remove(root.path("below/y"));
  std::filesystem::create_directory(root.path("below/y"));
  EXPECT_THAT(error_of([&] { find_file_set(root.path("below"), set); }),
              HasSubstr("'y' is missing"));
}

}  // namespace
}  // namespace lra
