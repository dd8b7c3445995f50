#include "training/settings/shipped_configs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_folder.h"
#include "tasks/all.h"
#include "training/settings/presets.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(ShippedConfigs, AreThoseOfTheCheckout) {
  for (const tasks::TaskSpec* task : tasks::all_tasks()) {
    EXPECT_EQ(edited_presets(std::string(task->name), "transformer"), "");
  }
  EXPECT_EQ(edited_config("literature.json"), "");
}

TEST(ShippedConfigs, AnEditedFileIsToldWhereverItLies) {
  const ScratchFolder scratch;
  fs::copy(config_folder(), scratch.file("configs"), fs::copy_options::recursive);
  ::setenv("LRA_CONFIGS", scratch.file("configs").c_str(), 1);
  EXPECT_EQ(edited_presets("text", "linformer"), "") << "the same files in another place";
  std::ofstream(scratch.file("configs/tasks/text.toml"), std::ios::app) << "# one more line\n";
  std::ofstream(scratch.file("configs/models/linformer.toml"), std::ios::app) << "\n";
  EXPECT_THAT(edited_presets("text", "local"), HasSubstr("configs/tasks/text.toml is not"));
  EXPECT_THAT(edited_presets("listops", "linformer"), HasSubstr("configs/models/linformer.toml"));
  EXPECT_EQ(edited_presets("listops", "local"), "") << "others are as they were";
  std::ofstream(scratch.file("configs/models/mamba.toml"), std::ios::app) << "\n";
  EXPECT_THAT(edited_presets("listops", "retnet"), HasSubstr("configs/models/mamba.toml"))
      << "whose preset is like it";
  ::unsetenv("LRA_CONFIGS");
}

TEST(ShippedConfigs, APresetLikeNoModelIsRefused) {
  const ScratchFolder scratch;
  fs::copy(config_folder(), scratch.file("configs"), fs::copy_options::recursive);
  ::setenv("LRA_CONFIGS", scratch.file("configs").c_str(), 1);
  for (const char* like : {"3", "\"mambo\"", "[\"mamba\"]"}) {
    std::ofstream(scratch.file("configs/models/retnet.toml"))
        << "[mixer]\n[small]\nlike = " << like;
    EXPECT_THROW((void)resolve_run("text", "retnet", "small", 0, {}, {}), Error) << like;
  }
  ::unsetenv("LRA_CONFIGS");
}

}  // namespace
}  // namespace lra::training
