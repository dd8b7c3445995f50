#include "io/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/scratch_folder.h"

namespace lra {
namespace {

using testing::HasSubstr;

std::set<std::string> set_of_names(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder);
  return {names.begin(), names.end()};
}

// The exit code that the lra::Error thrown by `f` carries; 0 when it throws none.
template <typename F>
int code_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return static_cast<int>(e.code());
  }
  return 0;
}

TEST(AtomicFile, ReplacesTheOldContentAndLeavesNothingElse) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.txt");
  write_file_atomically(path, "old");
  write_file_atomically(path, "new\0content");
  write_file_atomically(path, std::string("b\0c", 3));
  EXPECT_EQ(read_file(path, 100), std::string("b\0c", 3));
  EXPECT_EQ(set_of_names(folder.path()), std::set<std::string>{"a.txt"});
}

TEST(AtomicFile, ShowsNothingBeforeCommit) {
  const ScratchFolder folder;
  const std::string path = folder.file("a");
  write_file_atomically(path, "old");
  AtomicFile file(path);
  file.append("new ");
  file.append("content");
  EXPECT_EQ(file.size(), 11u);
  EXPECT_EQ(read_file(path, 100), "old");
  file.commit();
  EXPECT_EQ(read_file(path, 100), "new content");
}

TEST(AtomicFile, WithoutCommitLeavesTheOldFileAndNoTemporary) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("a"), "old");
  { AtomicFile(folder.file("a")).append("half"); }
  EXPECT_EQ(read_file(folder.file("a"), 100), "old");
  EXPECT_EQ(set_of_names(folder.path()), std::set<std::string>{"a"});
}

TEST(AtomicFile, TwoWritersOfOneFileDoNotMix) {
  const ScratchFolder folder;
  AtomicFile first(folder.file("a")), second(folder.file("a"));
  first.append("first");
  second.append("second");
  second.commit();
  first.commit();
  EXPECT_EQ(read_file(folder.file("a"), 100), "first");
  EXPECT_EQ(set_of_names(folder.path()), std::set<std::string>{"a"});
}

TEST(AtomicFile, RespectsTheUmask) {
  const ScratchFolder folder;
  const mode_t before = ::umask(027);
  write_file_atomically(folder.file("a"), "x");
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(folder.file("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(AtomicFile, FailsWithCauseAndExitCode74) {
  const auto write = [] { write_file_atomically("/no/such/folder/a", "x"); };
  EXPECT_EQ(error_of(write), "/no/such/folder/a: cannot be written: No such file or directory");
  EXPECT_EQ(code_of(write), 74);
}

TEST(AtomicFile, CannotReplaceAFolder) {
  const ScratchFolder folder;
  make_folder(folder.file("a"));
  EXPECT_THAT(error_of([&] { write_file_atomically(folder.file("a"), "x"); }),
              HasSubstr("is a folder"));
  EXPECT_EQ(set_of_names(folder.path()), std::set<std::string>{"a"});
}

// A rename would put a file in its place.
TEST(AtomicFile, ReplacesNoPipeAndNoDevice) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", folder.file("link"));
  for (const char* name : {"pipe", "link"}) {
    EXPECT_THAT(error_of([&] { write_file_atomically(folder.file(name), "x"); }),
                HasSubstr("is not a regular file"));
  }
  EXPECT_EQ(set_of_names(folder.path()), (std::set<std::string>{"pipe", "link"}));
}

// A limit on the size of files also stands in for a full disk: write() is cut short, then fails.
TEST(AtomicFile, AFullDiskLeavesTheOldFileUntouched) {
  const ScratchFolder folder;
  const std::string path = folder.file("a");
  write_file_atomically(path, "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(code_of([&] { write_file_atomically(path, std::string(5000, 'x')); }));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(read_file(path, 100), "old");
  EXPECT_EQ(set_of_names(folder.path()), std::set<std::string>{"a"});
}

TEST(AtomicFile, LeftByAKillCanBeRemovedAndNothingElseIs) {
  const ScratchFolder folder;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    AtomicFile file(folder.file("a"));
    file.append("half");
    ::_exit(0);  // without the destructor
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_EQ(set_of_names(folder.path()).size(), 1u);
  const std::set<std::string> others = {"a", ".lock", "b.tmp.1.2", ".tmp.1.2", ".c.tmp.x"};
  for (const std::string& name : others) write_file_atomically(folder.file(name), "x");
  remove_temporaries(folder.path());
  EXPECT_EQ(set_of_names(folder.path()), others);
  remove_temporaries(folder.file("none"));
}

TEST(MoveIntoPlace, ReplacesAFileAndSaysWhyItCannot) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("a"), "new");
  write_file_atomically(folder.file("b"), "old");
  move_into_place(folder.file("a"), folder.file("b"));
  EXPECT_EQ(read_file(folder.file("b"), 10), "new");
  const auto again = [&] { move_into_place(folder.file("a"), folder.file("b")); };
  EXPECT_THAT(error_of(again), HasSubstr("b: cannot rename " + folder.file("a")));
  EXPECT_EQ(code_of(again), 74);
}

TEST(WriteAll, ReportsAFullDevice) {
  const int fd = ::open("/dev/full", O_WRONLY);
  if (fd < 0) GTEST_SKIP() << "no /dev/full here";
  const std::byte byte{};
  EXPECT_EQ(write_all(fd, {&byte, 1}), ENOSPC);
  ::close(fd);
}

TEST(ReadFile, RefusesMissingAndTooLargeFiles) {
  const ScratchFolder folder;
  const auto missing = [&] { read_file(folder.file("none"), 10); };
  EXPECT_THAT(error_of(missing), HasSubstr("there is no such file"));
  EXPECT_EQ(code_of(missing), 2);
  write_file_atomically(folder.file("a"), "0123456789");
  EXPECT_EQ(read_file(folder.file("a"), 10), "0123456789");
  EXPECT_THAT(error_of([&] { read_file(folder.file("a"), 9); }), HasSubstr("larger than 9 B"));
  EXPECT_THAT(error_of([&] { read_file(folder.path(), 9); }), HasSubstr("is not a file"));
  EXPECT_EQ(code_of([&] { read_file(folder.path(), 9); }), 2);
}

TEST(ReadFile, ReadsFilesThatDoNotKnowTheirSize) {
  EXPECT_THAT(read_file("/proc/self/status", 1 << 20), HasSubstr("VmRSS"));
  EXPECT_THROW(read_file("/dev/zero", 1000), Error);
}

TEST(FreeBytes, AreSomeOnAWritableDisk) {
  const ScratchFolder folder;
  EXPECT_GT(free_bytes(folder.path()), 0u);
  EXPECT_EQ(code_of([&] { free_bytes(folder.file("none")); }), 74);
}

TEST(NamesIn, AreThoseOfAFolderAndNoneOfAMissingOne) {
  const ScratchFolder folder;
  EXPECT_TRUE(names_in(folder.path()).empty());
  make_folder(folder.file("b"));
  write_file_atomically(folder.file("a"), "x");
  EXPECT_EQ(set_of_names(folder.path()), (std::set<std::string>{"a", "b"}));
  EXPECT_TRUE(names_in(folder.file("none")).empty());
  EXPECT_EQ(code_of([&] { names_in(folder.file("a")); }), 74) << "a file is no folder";
}

TEST(RemoveTree, RemovesAllOfItAndMindsNoneBeingThere) {
  const ScratchFolder folder;
  make_folder(folder.file("a/b"));
  write_file_atomically(folder.file("a/b/c"), "x");
  EXPECT_EQ(remove_tree(folder.file("a")), 0);
  EXPECT_TRUE(names_in(folder.path()).empty());
  EXPECT_EQ(remove_tree(folder.file("a")), 0);
  EXPECT_NE(remove_tree("/proc/self/status"), 0);
}

TEST(FolderOf, LooksPastSlashesAtTheEnd) {
  EXPECT_EQ(folder_of("a/b"), "a");
  EXPECT_EQ(folder_of("a/b/"), "a");
  EXPECT_EQ(folder_of("b"), ".");
  EXPECT_EQ(folder_of("b//"), ".");
  EXPECT_EQ(folder_of("/b"), "/");
  EXPECT_EQ(folder_of("/b/"), "/");
  EXPECT_EQ(folder_of("/"), "/");
  EXPECT_EQ(folder_of(""), ".");
}

TEST(MakeFolder, MakesParentsAndAcceptsWhatIsThere) {
  const ScratchFolder folder;
  make_folder(folder.file("a/b/c"));
  make_folder(folder.file("a/b/c/"));
  EXPECT_TRUE(std::filesystem::is_directory(folder.file("a/b/c")));
  write_file_atomically(folder.file("file"), "x");
  EXPECT_EQ(code_of([&] { make_folder(folder.file("file")); }), 74);
  EXPECT_EQ(code_of([&] { make_folder(folder.file("file/a")); }), 74);
  EXPECT_THAT(error_of([&] { make_folder(folder.file("file/a")); }),
              HasSubstr(folder.file("file/a") + ": the folder cannot be made: Not a directory"));
}

}  // namespace
}  // namespace lra
