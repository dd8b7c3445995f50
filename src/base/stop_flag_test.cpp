#include "base/stop_flag.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace lra {
namespace {

// Signals go to a child process, so that a failure cannot end the tests. Returns its wait status.
template <typename F>
int status_of_child(const F& body, StartedBy by = StartedBy::kUser) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGHUP, SIG_DFL);  // the tests may run below nohup
    install_stop_handlers(by);
    ::_exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

class StopFlag : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { clear_stop_flag(); }
  void TearDown() override { clear_stop_flag(); }
};

class StopFlagStops : public StopFlag {};
class StopFlagSaves : public StopFlag {};

TEST_P(StopFlagStops, ByASignalWithoutEndingTheProcess) {
  const int status = status_of_child([&] {
    if (stop_requested()) return 1;
    std::raise(GetParam());
    return stop_signal() == GetParam() && take_save_request() == 0 ? 42 : 2;
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_P(StopFlagStops, AtOnceByASecondSignal) {
  const int status = status_of_child([&] {
    std::raise(SIGINT);
    std::raise(GetParam());
    return 1;
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), GetParam());
}

TEST_P(StopFlagSaves, AlsoWhenBlockedUntilTheProcessListens) {
  const sigset_t signals = save_signals();
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &signals, nullptr), 0);
  std::raise(GetParam());
  install_stop_handlers(StartedBy::kUser);
  EXPECT_EQ(take_save_request(), GetParam());
  EXPECT_EQ(take_save_request(), 0);
}

INSTANTIATE_TEST_SUITE_P(Signals, StopFlagStops, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST_P(StopFlagSaves, OnceAndGoesOn) {
  const int status = status_of_child([&] {
    std::raise(GetParam());
    if (stop_requested() || take_save_request() != GetParam()) return 1;
    if (take_save_request() != 0) return 2;
    std::raise(GetParam());
    return take_save_request() == GetParam() ? 42 : 3;
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

INSTANTIATE_TEST_SUITE_P(Signals, StopFlagSaves, testing::Values(SIGUSR1, SIGUSR2));

TEST_F(StopFlag, IsRaisedBySigusr2InABatchJobAndOnlyCtrlCTwiceEndsAtOnce) {
  const auto by = StartedBy::kBatchSystem;
  const int status = status_of_child(
      [&] {
        std::raise(SIGUSR1);
        if (stop_requested() || take_save_request() != SIGUSR1) return 1;
        std::raise(SIGUSR2);
        if (stop_signal() != SIGUSR2 || take_save_request() != 0) return 2;
        for (const int again : {SIGUSR2, SIGTERM, SIGTERM, SIGHUP}) std::raise(again);
        return stop_requested() ? 42 : 3;
      },
      by);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  const int interrupted = status_of_child(
      [&] {
        std::raise(SIGTERM);
        std::raise(SIGINT);
        return 1;
      },
      by);
  EXPECT_TRUE(WIFSIGNALED(interrupted));
  EXPECT_EQ(WTERMSIG(interrupted), SIGINT);
}

TEST_F(StopFlag, CanBeRaisedAndClearedByTests) {
  EXPECT_FALSE(stop_requested());
  raise_stop_flag(SIGTERM);
  EXPECT_EQ(stop_signal(), SIGTERM);
  raise_stop_flag(SIGUSR2);
  EXPECT_EQ(take_save_request(), SIGUSR2);
  EXPECT_EQ(stop_signal(), SIGTERM);
  clear_stop_flag();
  EXPECT_EQ(stop_signal(), 0);
}

TEST_P(StopFlagStops, NothingOnceAllIsSaved) {
  const int status = status_of_child([&] {
    ignore_stop_signals();
    std::raise(GetParam());
    std::raise(GetParam());
    return stop_requested() ? 1 : 42;
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

}  // namespace
}  // namespace lra
