#include "io/lock_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

using testing::HasSubstr;

void never() { throw std::runtime_error("had to wait"); }

TEST(LockFile, OneProcessHoldsItAndIsNamed) {
  const ScratchFolder folder;
  const int fd = try_lock_file(folder.file("lock"));
  ASSERT_GE(fd, 0);
  EXPECT_EQ(try_lock_file(folder.file("lock")), -1);
  EXPECT_EQ(lock_owner(folder.file("lock")).process, std::to_string(::getpid()));
  EXPECT_TRUE(lock_owner(folder.file("lock")).is_here);
  EXPECT_TRUE(is_locked(folder.file("lock")));
  ::close(fd);
  EXPECT_FALSE(is_locked(folder.file("lock")));
  EXPECT_FALSE(is_locked(folder.file("none")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("none")));
  const int again = try_lock_file(folder.file("lock"));
  EXPECT_GE(again, 0);
  ::close(again);
  EXPECT_EQ(lock_owner(folder.file("none")).process, "");
  write_file_atomically(folder.file("odd"), "\033[31m");
  EXPECT_EQ(lock_owner(folder.file("odd")).process, "");
  EXPECT_THROW(try_lock_file(folder.file("no/folder")), Error);
}

TEST(LockFile, LeavesAFileOfSomebodyElseAlone) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("Cargo.lock"), "# cargo\n[[package]]\n");
  write_file_atomically(folder.file("precious"), "precious");
  std::filesystem::create_symlink("precious", folder.file("link"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  make_folder(folder.file("folder"));
  for (const char* name : {"Cargo.lock", "link", "pipe", "folder"}) {
    EXPECT_THAT(error_of([&] { try_lock_file(folder.file(name)); }),
                HasSubstr("is not one of this program"))
        << name;
  }
  EXPECT_EQ(read_file(folder.file("Cargo.lock"), 100), "# cargo\n[[package]]\n");
  EXPECT_EQ(read_file(folder.file("precious"), 100), "precious");
  write_file_atomically(folder.file("zeros"), std::string(10, '\0'));
  const int fd = try_lock_file(folder.file("zeros"));
  EXPECT_GE(fd, 0);
  ::close(fd);
}

TEST(LockFile, SaysWhenItsOwnerWorksOnAnotherMachine) {
  const ScratchFolder folder;
  const std::string path = folder.file("lock");
  write_file_atomically(path, "12 7b0c2a3e-0000-4000-8000-000000000000");
  EXPECT_EQ(lock_owner(path).process, "12");
  EXPECT_FALSE(lock_owner(path).is_here);
  const int fd = ::open(path.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_THAT(error_of([&] { FileLock(path, "the run folder"); }),
              HasSubstr("(process 12 of another machine)"));
  ::close(fd);
  write_file_atomically(path, "12");
  EXPECT_EQ(lock_owner(path).process, "12");
  EXPECT_TRUE(lock_owner(path).is_here);
}

TEST(FileLock, LetsOneHolderIn) {
  const ScratchFolder folder;
  {
    const FileLock lock(folder.file("lock"), "the run folder");
    const std::string message = error_of([&] { FileLock(folder.file("lock"), "the run folder"); });
    EXPECT_THAT(message, HasSubstr("the run folder is in use by another process (process " +
                                   std::to_string(::getpid()) + ")"));
  }
  EXPECT_EQ(error_of([&] { FileLock(folder.file("lock"), "the run folder"); }), "");
}

TEST(FileLock, EndsWithItsProcessHoweverThatEnds) {
  const ScratchFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FileLock lock(folder.file("lock"), "x");
    if (::write(ready[1], "r", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(error_of([&] { FileLock(folder.file("lock"), "x"); }),
              HasSubstr(std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(error_of([&] { FileLock(folder.file("lock"), "x"); }), "");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(FileLock, LeavesNoFileAndWhatTheWaitThrowsEndsIt) {
  const ScratchFolder folder;
  const std::string path = folder.file("lock");
  {
    const FileLock first(path, never);
    EXPECT_THROW(FileLock(path, never), std::runtime_error);
    EXPECT_THROW(FileLock(path, "the folder"), Error);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Each of several processes adds one to a number in a file, which loses some without a lock; every
// release removes the lock file under the eyes of those that wait.
TEST(FileLock, ManyProcessesTakeTurnsThoughTheFileIsRemovedEachTime) {
  constexpr int kProcesses = 4, kTimes = 200;
  const ScratchFolder folder;
  const std::string number = folder.file("number"), lock = folder.file("lock");
  write_file_atomically(number, "0");
  for (int process = 0; process < kProcesses; ++process) {
    if (::fork() != 0) continue;
    for (int i = 0; i < kTimes; ++i) {
      int fd;
      while ((fd = try_lock_file(lock)) < 0) ::usleep(100);
      const int value = std::stoi(read_file(number, 100));
      ::usleep(10);
      write_file_atomically(number, std::to_string(value + 1));
      ::unlink(lock.c_str());
      ::close(fd);
    }
    ::_exit(0);
  }
  for (int process = 0; process < kProcesses; ++process) ::wait(nullptr);
  EXPECT_EQ(read_file(number, 100), std::to_string(kProcesses * kTimes));
}

TEST(LockFile, NoneAreTakenWhereTheUserSaysSo) {
  const ScratchFolder folder;
  EXPECT_TRUE(takes_locks());
  ::setenv("LRA_LOCKS", "none", 1);
  EXPECT_FALSE(takes_locks());
  const FileLock first(folder.file("lock"), "a"), second(folder.file("lock"), "b");
  ::setenv("LRA_LOCKS", "some", 1);
  EXPECT_THROW(takes_locks(), Error);
  ::unsetenv("LRA_LOCKS");
}

}  // namespace
}  // namespace lra
