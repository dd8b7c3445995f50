#include "data/new_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/error.h"
#include "data/files.h"
#include "data/test_fixtures.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string write(const std::string& folder, std::string_view content) {
  return error_of([&] {
    write_new_folder(folder, [&](const std::string& partial) {
      EXPECT_FALSE(is_there(folder));
      NewFile(partial + "/file").append(bytes_of(content));
    });
  });
}

TEST(NewFolder, AppearsWhenItIsWhole) {
  const TestFolder root;
  EXPECT_EQ(write(root.path("a/b/"), "text"), "");
  EXPECT_EQ(read_file(root.path("a/b/file"), 100), "text");
  EXPECT_THAT(names_in(root.path("a")), ElementsAre("b")) << "no lock and no partial folder";
}

TEST(NewFolder, NeverReplacesWhatIsThere) {
  const TestFolder root;
  ASSERT_EQ(write(root.path("a"), "first"), "");
  EXPECT_THAT(write(root.path("a"), "second"), HasSubstr("exists already"));
  EXPECT_EQ(read_file(root.path("a/file"), 100), "first");
}

TEST(NewFolder, NothingStaysOfAFailure) {
  const TestFolder root;
  const auto fail = [&] {
    write_new_folder(root.path("a"), [&](const std::string& partial) {
      NewFile(partial + "/file").append(bytes_of("half"));
      NewFile(partial + "/file");  // there already
    });
  };
  EXPECT_THAT(error_of(fail), HasSubstr("cannot create"));
  EXPECT_TRUE(names_in(root.path(".")).empty());
}

TEST(NewFolder, WhatAKilledProcessLeftIsRemoved) {
  const TestFolder root;
  std::filesystem::create_directories(root.path("a.lra.partial"));
  NewFile(root.path("a.lra.partial/old")).append(bytes_of("half"));
  EXPECT_EQ(write(root.path("a"), "text"), "");
  EXPECT_THAT(names_in(root.path("a")), ElementsAre("file"));
}

// Two that begin at once: one writes, the other gets an error that it exists.
TEST(NewFolder, OneOfTwoWrites) {
  const TestFolder root;
  std::string first, second;
  std::thread other([&] { first = write(root.path("a"), "text"); });
  second = write(root.path("a"), "text");
  other.join();
  EXPECT_NE(first.empty(), second.empty());
  EXPECT_THAT(first + second, HasSubstr("exists already"));
  EXPECT_EQ(read_file(root.path("a/file"), 100), "text");
}

}  // namespace
}  // namespace lra
