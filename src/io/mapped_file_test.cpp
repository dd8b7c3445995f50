#include "io/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

using testing::HasSubstr;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, ShowsTheBytes) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("a"), "content");
  const MappedFile file(folder.file("a"));
  EXPECT_EQ(text_of(file), "content");
  EXPECT_EQ(file.path(), folder.file("a"));
}

TEST(MappedFile, OfNothingIsEmpty) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("a"), "");
  EXPECT_TRUE(MappedFile(folder.file("a")).bytes().empty());
}

TEST(MappedFile, StaysValidWhenItMovesAndWhenTheFileIsReplaced) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("a"), "first");
  write_file_atomically(folder.file("b"), "second");
  MappedFile file(folder.file("a"));
  const std::byte* address = file.bytes().data();
  MappedFile moved(std::move(file));
  write_file_atomically(folder.file("a"), "replaced");
  EXPECT_EQ(moved.bytes().data(), address);
  EXPECT_EQ(text_of(moved), "first");
  moved = MappedFile(folder.file("b"));
  EXPECT_EQ(text_of(moved), "second");
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const ScratchFolder folder;
  EXPECT_THAT(error_of([&] { MappedFile(folder.file("none")); }), HasSubstr("no such file"));
  EXPECT_THAT(error_of([&] { MappedFile(folder.path()); }), HasSubstr("not a file"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { MappedFile(folder.file("pipe")); }), HasSubstr("not a file"));
}

}  // namespace
}  // namespace lra
