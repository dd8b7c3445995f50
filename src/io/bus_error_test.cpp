#include "io/bus_error.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"

namespace lra {
namespace {

TEST(BusErrorDeathTest, OfAMappedFileIsOneLine) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("a file of data");
  write_file_atomically(path, std::string(100000, 'x'));
  const MappedFile file(path);
  std::filesystem::resize_file(path, 10);
  EXPECT_EXIT(
      {
        report_unreadable_maps();
        volatile auto byte = file.bytes()[50000];
        (void)byte;
      },
      testing::ExitedWithCode(74),
      "^lra: a file of the data or of a checkpoint can no longer be read");
}

TEST(BusErrorDeathTest, OfAnotherCauseEndsTheProcessAsEver) {
  EXPECT_EXIT(
      {
        report_unreadable_maps();
        std::raise(SIGBUS);
        std::raise(SIGBUS);  // the first has put the default action back
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace lra
