#include "training/run/mlperf_log.h"

#include <gmock/gmock.h>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"

namespace lra::training {
namespace {

using ::testing::ContainsRegex;
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

TEST(MlperfLog, EndsWithTheWarningsOfARunThatIsDone) {
  const ScratchFolder scratch;
  const std::string path = scratch.file("mllog.txt");
  RunRecord record;
  record.status = RunStatus::kStopped;
  record.warnings = {"too small"};
  { MlperfLog(path, 0).end(record, 2); }
  EXPECT_THAT(read_file(path, 1 << 20), Not(HasSubstr("too small")));
  record.status = RunStatus::kDone;
  { MlperfLog(path, 2).end(record, 4); }
  EXPECT_THAT(read_file(path, 1 << 20),
              ContainsRegex("\"key\":\"warning\".*\"too small\".*\n.*\"run_stop\""));
}

}  // namespace
}  // namespace lra::training
