#include "base/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/error.h"

namespace lra {
namespace {

using Values = std::map<std::string, std::string>;

Launch launch_of(const Values& values) {
  return read_launch([&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

// Copy with some values changed or removed.
Values changed(Values values, const std::map<std::string, std::optional<std::string>>& changes) {
  for (const auto& [name, value] : changes) {
    values.erase(name);
    if (value) values[name] = *value;
  }
  return values;
}

const Values kTorchrun = {{"RANK", "1"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "1"},
                          {"MASTER_ADDR", "node1.example"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                          {"TORCHELASTIC_RESTART_COUNT", "2"}};
const Values kStep = {{"SLURM_PROCID", "1"},   {"SLURM_NTASKS", "8"},
                      {"SLURM_LOCALID", "1"},  {"SLURM_NODELIST", "gpu[07-09,12],cpu1"},
                      {"SLURM_STEP_ID", "3"},  {"SLURM_STEP_NUM_TASKS", "2"},
                      {"SLURM_JOB_ID", "1234"}};

TEST(LaunchEnvironment, WithoutVariablesIsOneProcess) {
  const Launch launch = launch_of({});
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.num_ranks, 1);
}

TEST(LaunchEnvironment, ReadsWhatTorchrunSets) {
  const Launch launch = launch_of(kTorchrun);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.num_ranks, 4);
  EXPECT_EQ(launch.address, "node1.example");
  EXPECT_EQ(launch.port, 29500);
  EXPECT_TRUE(launch.store_is_hosted);
  EXPECT_EQ(launch.restarts, 2);
  EXPECT_FALSE(
      launch_of(changed(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).store_is_hosted);
  EXPECT_FALSE(
      launch_of(changed(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", {}}})).store_is_hosted);
}

TEST(LaunchEnvironment, OneRankNeedsNoMeetingPlace) {
  EXPECT_EQ(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).num_ranks, 1);
}

TEST(LaunchEnvironment, TorchrunWithinAStepOfSlurmCounts) {
  Values both = kStep;
  both.insert(kTorchrun.begin(), kTorchrun.end());
  EXPECT_EQ(launch_of(both).num_ranks, 4);
}

TEST(LaunchEnvironment, ReadsAStepOfSlurm) {
  const Launch launch = launch_of(kStep);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.num_ranks, 2);
  EXPECT_EQ(launch.address, "gpu07");
  EXPECT_FALSE(launch.store_is_hosted);
  const Launch other = launch_of(changed(kStep, {{"SLURM_STEP_ID", "4"}}));
  EXPECT_NE(other.port, launch.port) << "two steps of a job may run at once";
  EXPECT_EQ(launch_of(changed(kStep, {{"SLURM_STEP_NUM_TASKS", {}}})).num_ranks, 8);
}

TEST(LaunchEnvironment, FindsTheMeetingPlaceOfAStep) {
  const auto address = [](const std::map<std::string, std::optional<std::string>>& changes) {
    return launch_of(changed(kStep, changes)).address;
  };
  EXPECT_EQ(address({{"SLURM_STEP_NODELIST", "b5"}}), "b5");
  EXPECT_EQ(address({{"SLURM_NNODES", "1"}}), "127.0.0.1");
  EXPECT_EQ(address({{"SLURM_NNODES", "4"}, {"SLURM_STEP_NUM_NODES", "1"}}), "127.0.0.1");
  EXPECT_EQ(address({{"SLURM_NNODES", "2"}}), "gpu07");
  EXPECT_EQ(address({{"SLURM_NODELIST", {}}}), "127.0.0.1");
  EXPECT_EQ(address({{"SLURM_NODELIST", {}}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.5"}}),
            "10.0.0.5");
  EXPECT_EQ(address({{"MASTER_ADDR", "here"}}), "here");
  EXPECT_EQ(launch_of(changed(kStep, {{"MASTER_PORT", "77"}})).port, 77);
}

TEST(LaunchEnvironment, ABatchScriptAndAJobOfOneTaskAreOneProcess) {
  EXPECT_EQ(
      launch_of(changed(kStep, {{"SLURM_STEP_ID", {}}, {"SLURM_STEP_NUM_TASKS", {}}})).num_ranks,
      1);
  EXPECT_EQ(launch_of(changed(kStep, {{"SLURM_PROCID", "0"},
                                      {"SLURM_LOCALID", "0"},
                                      {"SLURM_STEP_NUM_TASKS", "1"}}))
                .num_ranks,
            1);
  EXPECT_EQ(launch_of({{"SLURM_JOB_ID", "5"}, {"SLURM_NTASKS", "4"}}).num_ranks, 1);
}

TEST(LaunchEnvironment, ReadsTheFirstOfManyHosts) {
  EXPECT_EQ(first_host("a"), "a");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("n[3]"), "n3");
  EXPECT_EQ(first_host("n[003-100]"), "n003");
  EXPECT_EQ(first_host("n[2,4]-ib"), "n2-ib");
  EXPECT_EQ(first_host("r[1-2]n[5,9-12],x"), "r1n5");
  for (const char* bad : {"", ",", "n[", "n[]", "n[-3]", "n[a]", "a b", "a;rm", "n[1-2"}) {
    EXPECT_EQ(first_host(bad), "") << bad;
  }
}

void expect_refused(const Values& values, const std::string& name, const std::string& text) {
  try {
    (void)launch_of(values);
    ADD_FAILURE() << name << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUserError);
    EXPECT_THAT(error.what(), testing::HasSubstr("variable " + name + ":"));
    EXPECT_THAT(error.what(), testing::HasSubstr(text));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

TEST(LaunchEnvironment, RefusesGarbage) {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"}) {
    for (const char* bad :
         {"", " 1", "1 ", "-1", "+1", "x", "1.0", "0x1", "99999999999999999999", "1\n2", "70000"}) {
      if (std::string(name) == "TORCHELASTIC_RESTART_COUNT" && std::string(bad) == "70000")
        continue;
      expect_refused(changed(kTorchrun, {{name, bad}}), name, "is '");
    }
  }
  expect_refused(changed(kTorchrun, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE", "is '0'");
  expect_refused(changed(kTorchrun, {{"MASTER_PORT", "0"}}), "MASTER_PORT", "is '0'");
  for (const char* bad : {"", "a b", "x\ny", "$(id)"}) {
    expect_refused(changed(kTorchrun, {{"MASTER_ADDR", bad}}), "MASTER_ADDR", "is '");
  }
  expect_refused(changed(kStep, {{"SLURM_NODELIST", "n["}}), "SLURM_NODELIST", "list of hosts");
  expect_refused(changed(kStep, {{"SLURM_JOB_ID", "job"}}), "SLURM_JOB_ID", "is 'job'");
}

TEST(LaunchEnvironment, RefusesContradictions) {
  expect_refused(changed(kTorchrun, {{"RANK", "4"}}), "RANK", "WORLD_SIZE 4");
  expect_refused(changed(kTorchrun, {{"RANK", {}}}), "RANK", "is not set");
  expect_refused(changed(kTorchrun, {{"WORLD_SIZE", {}}}), "WORLD_SIZE", "is not set");
  expect_refused(changed(kTorchrun, {{"MASTER_ADDR", {}}}), "MASTER_ADDR", "is not set");
  expect_refused(changed(kTorchrun, {{"MASTER_PORT", {}}}), "MASTER_PORT", "is not set");
  expect_refused(changed(kStep, {{"SLURM_PROCID", "2"}}), "SLURM_PROCID", "SLURM_STEP_NUM_TASKS 2");
  expect_refused(changed(kStep, {{"SLURM_STEP_NUM_TASKS", {}}, {"SLURM_NTASKS", {}}}),
                 "SLURM_NTASKS", "is not set");
}

}  // namespace
}  // namespace lra
