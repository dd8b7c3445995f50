#include "base/control_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/scratch_folder.h"

namespace lra {
namespace {

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(MemoryGroups, TheTightestOfAGroupAndThoseAboveItCounts) {
  const ScratchFolder scratch;
  const std::string mount = scratch.file("cgroup"), group = mount + "/slurm/job_7";
  write(group + "/memory.max", "1000\n");
  write(group + "/memory.current", "700\n");
  write(group + "/memory.stat", "anon 500\ninactive_file 150\nactive_file 50\n");
  write(mount + "/slurm/memory.max", "5000\n");
  write(mount + "/slurm/memory.current", "4800\n");
  const MemoryGroup found = memory_group(mount, "0::/slurm/job_7\n");
  EXPECT_EQ(found.limit, 1000);
  EXPECT_EQ(found.margin, 200) << "450 of the job, 200 of the group above";
  write(mount + "/slurm/memory.max", "max\n");
  EXPECT_EQ(memory_group(mount, "0::/slurm/job_7\n").margin, 450);
}

TEST(MemoryGroups, TheMountIsTheGroupOfAContainer) {
  const ScratchFolder scratch;
  write(scratch.file("memory.max"), "1000\n");
  write(scratch.file("memory.current"), "1200\n");
  const MemoryGroup found = memory_group(scratch.file(""), "0::/\n");
  EXPECT_EQ(found.limit, 1000);
  EXPECT_EQ(found.margin, 0) << "not below nothing";
}

TEST(MemoryGroups, OfVersion1AreReadAsWell) {
  const ScratchFolder scratch;
  const std::string group = scratch.file("memory/user");
  write(group + "/memory.limit_in_bytes", "1000\n");
  write(group + "/memory.usage_in_bytes", "900\n");
  write(group + "/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
  const MemoryGroup found = memory_group(scratch.file(""), "5:cpuset:/other\n4:cpu,memory:/user\n");
  EXPECT_EQ(found.limit, 1000);
  EXPECT_EQ(found.margin, 200);
}

TEST(MemoryGroups, WithoutLimitsAllowEverything) {
  const ScratchFolder scratch;
  for (const char* groups : {"", "0::/a\n", "nonsense\n"}) {
    EXPECT_EQ(memory_group(scratch.file(""), groups).limit, INT64_MAX);
    EXPECT_EQ(memory_group(scratch.file(""), groups).margin, INT64_MAX);
  }
}

TEST(ProcessorQuota, IsTheLeastOfAGroupAndThoseAboveIt) {
  const ScratchFolder scratch;
  const std::string mount = scratch.file("cgroup"), groups = "0::/kubepods/pod7/main\n";
  write(mount + "/kubepods/pod7/main/cpu.max", "max 100000\n");
  write(mount + "/kubepods/pod7/cpu.max", "150000 100000\n");
  write(mount + "/kubepods/cpu.max", "6400000 100000\n");
  EXPECT_EQ(processor_quota(mount, groups), 1.5);
  write(mount + "/kubepods/pod7/main/cpu.max", "25000 50000\n");
  EXPECT_EQ(processor_quota(mount, groups), 0.5);
  EXPECT_EQ(processor_quota(mount, "0::/kubepods\n"), 64) << "groups below are not this one's";
}

TEST(ProcessorQuota, OfAContainerIsThatOfTheMount) {
  const ScratchFolder scratch;
  write(scratch.file("cpu.max"), "200000 100000\n");
  EXPECT_EQ(processor_quota(scratch.file(""), "0::/\n"), 2);
}

TEST(ProcessorQuota, OfVersion1IsReadAsWell) {
  const ScratchFolder scratch;
  const std::string groups = "5:cpuset:/\n4:cpu,cpuacct:/docker/ab\n0::/\n";
  write(scratch.file("cpu/cpu.cfs_quota_us"), "-1\n");
  write(scratch.file("cpu/cpu.cfs_period_us"), "100000\n");
  EXPECT_TRUE(std::isinf(processor_quota(scratch.file(""), groups)));
  write(scratch.file("cpu/docker/cpu.cfs_quota_us"), "300000\n");
  write(scratch.file("cpu/docker/cpu.cfs_period_us"), "100000\n");
  write(scratch.file("cpu/docker/ab/cpu.cfs_quota_us"), "50000\n");
  write(scratch.file("cpu/docker/ab/cpu.cfs_period_us"), "20000\n");
  EXPECT_EQ(processor_quota(scratch.file(""), groups), 2.5);
  EXPECT_TRUE(std::isinf(processor_quota(scratch.file(""), "5:cpuset:/docker/ab\n")));
}

TEST(ProcessorQuota, OfVersion1MayBeMountedUnderAllItsNames) {
  const ScratchFolder scratch;
  write(scratch.file("cpu,cpuacct/cpu.cfs_quota_us"), "100000\n");
  write(scratch.file("cpu,cpuacct/cpu.cfs_period_us"), "100000\n");
  EXPECT_EQ(processor_quota(scratch.file(""), "4:cpu,cpuacct:/\n"), 1);
}

TEST(ProcessorQuota, IsInfiniteWithoutOneThatCanBeRead) {
  const ScratchFolder scratch;
  for (const char* text : {"", "max 100000\n", "100000\n", "0 100000\n", "100000 0\n", "x y\n"}) {
    write(scratch.file("cpu.max"), text);
    EXPECT_TRUE(std::isinf(processor_quota(scratch.file(""), "0::/a\n"))) << text;
  }
  EXPECT_TRUE(std::isinf(processor_quota(scratch.file("none"), "0::/a\n4:cpu:/b\nnonsense\n")));
  EXPECT_GT(processor_quota(), 0);
}

}  // namespace
}  // namespace lra
