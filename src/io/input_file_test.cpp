#include "io/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

using ::testing::HasSubstr;

std::string open_error(const std::string& path) {
  try {
    const InputFile file(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(InputFile, ReadsAtAnyPlace) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("a"), "0123456789");
  const InputFile file(folder.file("a"));
  EXPECT_EQ(file.size(), 10U);
  std::string part(4, ' ');
  EXPECT_EQ(file.read_at(7, part.data(), 4), 3U);
  EXPECT_EQ(part, "789 ");
  EXPECT_EQ(file.read_at(2, part.data(), 4), 4U);
  EXPECT_EQ(part, "2345");
  EXPECT_EQ(file.read_at(10, part.data(), 4), 0U);
  EXPECT_EQ(file.read_at(100, part.data(), 4), 0U);
}

TEST(InputFile, OpensRegularFilesAlone) {
  const ScratchFolder folder;
  EXPECT_THAT(open_error(folder.file("none")), HasSubstr("there is no such file"));
  EXPECT_THAT(open_error(folder.path()), HasSubstr("is not a file; expected a regular file"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(open_error(folder.file("pipe")), HasSubstr("is not a file"));
  std::filesystem::create_symlink("loop", folder.file("loop"));
  EXPECT_THAT(open_error(folder.file("loop")), HasSubstr("cannot be opened"));
  write_file_atomically(folder.file("a"), "");
  EXPECT_THAT(open_error(folder.file("a") + "/b"), HasSubstr("there is no such file"));
}

// A clone without the large files has these in their places, and they are readable text.
TEST(InputFile, RefusesAPointerOfGitLfs) {
  const ScratchFolder folder;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  write_file_atomically(folder.file("a"), pointer);
  EXPECT_THAT(open_error(folder.file("a")), HasSubstr("a: is a pointer of Git LFS"));
  write_file_atomically(folder.file("b"), pointer + std::string(2000, 'x'));
  EXPECT_EQ(open_error(folder.file("b")), "") << "a text that begins with the same words";
}

}  // namespace
}  // namespace lra
