#include "training/mlperf_log.h"

#include <gmock/gmock.h>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"

namespace lra::training {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MlperfLog, SaysNothingTwiceAfterAResume) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("mllog.txt");
  {
    MlperfLog log(path, 0);
    log.evaluation("val", {.step = 4});
    log.evaluation("val", {.step = 8});
    log.evaluation("test", {.step = 4});
  }
  const std::string whole = read_file(path, 1 << 20);
  write_file_atomically(path, whole + ":::MLLOG {\"names");
  { MlperfLog log(path, 4); }
  const std::string kept = read_file(path, 1 << 20);
  EXPECT_THAT(kept, HasSubstr("\"step_num\":4"));
  EXPECT_THAT(kept, Not(HasSubstr("\"step_num\":8")));
  EXPECT_THAT(kept, Not(HasSubstr("test")));
  EXPECT_TRUE(whole.starts_with(kept));
  EXPECT_EQ(kept.back(), '\n');
}

}  // namespace
}  // namespace lra::training
