#include "training/settings/data_root.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/scratch_folder.h"

namespace lra::training {
namespace {

TEST(DataRoot, OfARunIsTheOneItWasTrainedWith) {
  const ScratchFolder scratch;
  const RunFolder run{scratch.path()};
  const std::string data = scratch.file("my data");
  EXPECT_EQ(data_root_of(run, ""), data_root(""));
  std::filesystem::create_directory(data);
  remember_data_root(run, data + "/../my data");
  EXPECT_EQ(data_root_of(run, ""), data);
  EXPECT_EQ(data_root_of(run, "other"), "other");
  std::filesystem::remove(data);
  EXPECT_EQ(data_root_of(run, ""), data_root("")) << "it is gone";
}

}  // namespace
}  // namespace lra::training
