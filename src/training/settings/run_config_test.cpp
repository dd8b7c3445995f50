#include "training/settings/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/config.h"
#include "base/scratch_folder.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "records/run_identity.h"
#include "tasks/all.h"
#include "training/settings/fairness.h"
#include "training/settings/presets.h"
#include "training/settings/stored_run.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A configs folder of its own, which the program looks at while this lives.
class OwnConfigs {
 public:
  OwnConfigs(const std::string& task_toml, const std::string& model_toml) {
    write("tasks/listops.toml", task_toml);
    write("tasks/text.toml", "");
    write("models/linformer.toml", model_toml);
    ::setenv("LRA_CONFIGS", scratch_.path().c_str(), 1);
  }
  ~OwnConfigs() { ::unsetenv("LRA_CONFIGS"); }

  std::string file(const std::string& name) const { return scratch_.file(name); }

 private:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(scratch_.file(name)).parent_path());
    std::ofstream(scratch_.file(name)) << text;
  }
  ScratchFolder scratch_;
};

TEST(RunConfig, NamesTheVariableOfAFolderWithoutPresets) {
  const ScratchFolder scratch;
  for (const std::string& folder : {scratch.path(), scratch.file("none"), std::string()}) {
    ::setenv("LRA_CONFIGS", folder.c_str(), 1);
    try {
      (void)config_folder();
      ADD_FAILURE() << folder;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("LRA_CONFIGS: names '"));
    }
    ::unsetenv("LRA_CONFIGS");
  }
}

TEST(RunConfig, NamesTheRunOfAFolderOfCheckpoints) {
  for (const char* path :
       {"runs/a/checkpoints/step_20", "runs/a/checkpoints/best/", "runs/a/checkpoints"}) {
    try {
      (void)read_run({path});
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected the run's folder, 'runs/a'")) << path;
    }
  }
}

RunConfig small(const std::string& task, const std::string& model,
                const std::vector<std::string>& sets = {}) {
  return resolve_run(task, model, "small", 0, {}, sets);
}

// Every layer sets one key less than the one below it: each key shows which layer came last.
TEST(RunConfig, MergesItsLayersInTheDocumentedOrder) {
  const OwnConfigs configs(R"(
[mine.train]
batch_size = 1001
eval_every = 1001
steps = 1001
warmup_steps = 1001
cycle_steps = 1001
log_every = 1001
eval_batch_size = 1001
)",
                           R"(
[train]
eval_every = 1002
steps = 1002
warmup_steps = 1002
cycle_steps = 1002
log_every = 1002
eval_batch_size = 1002
[mine.train]
steps = 1003
warmup_steps = 1003
cycle_steps = 1003
log_every = 1003
eval_batch_size = 1003
[mine.listops.train]
warmup_steps = 1004
cycle_steps = 1004
log_every = 1004
eval_batch_size = 1004
)");
  const ConfigTable overrides =
      parse_toml("[train]\ncycle_steps = 1005\nlog_every = 1005\neval_batch_size = 1005", "suite");
  const RunConfig run =
      resolve_run("listops", "linformer", "mine", 5, overrides,
                  {"train.log_every=1006", "train.eval_batch_size=1006", "train.log_every=1007"});
  EXPECT_EQ(run.train.keep_checkpoints, TrainConfig().keep_checkpoints);
  EXPECT_EQ(run.train.batch_size, 1001);
  EXPECT_EQ(run.train.eval_every, 1002);
  EXPECT_EQ(run.train.steps, 1003);
  EXPECT_EQ(run.train.warmup_steps, 1004);
  EXPECT_EQ(run.train.cycle_steps, 1005);
  EXPECT_EQ(run.train.eval_batch_size, 1006);
  EXPECT_EQ(run.train.log_every, 1007) << "the last --set of a key counts";
  EXPECT_EQ(run.seed, 5u);
}

TEST(RunConfig, TakesTheMixersSettingsFromTheModelsFile) {
  const auto rank = [](const RunConfig& run) {
    return std::get<int64_t>(run.mixer_settings.find("rank")->value);
  };
  const OwnConfigs configs("[a.task]\nlength = 300\n[b.task]\nlength = 200\n[c.task]\n",
                           "[mixer]\nrank = 7\n[b.mixer]\nrank = 8\n[b.text.mixer]\nrank = 9\n");
  const auto run = [](const char* preset, std::vector<std::string> sets = {}) {
    return resolve_run("listops", "linformer", preset, 0, {}, sets);
  };
  EXPECT_EQ(rank(run("a")), 7);
  EXPECT_EQ(rank(run("b")), 8) << "the section of text is not for listops";
  EXPECT_EQ(rank(run("b", {"mixer.rank=10"})), 10);
  EXPECT_EQ(run("a").make_task()->shape().length, 300);
  EXPECT_EQ(run("c").make_task()->shape().length, 2000) << "the default of the task";
  EXPECT_THAT(preset_names("listops"), ElementsAre("a", "b", "c"));
}

TEST(RunConfig, KnowsTheStepsOfItsUnchangedPreset) {
  const OwnConfigs configs("[a.train]\nsteps = 30\n[b.train]\nsteps = 40\n",
                           "[b.listops.train]\nsteps = 50\n");
  const auto steps = [](const char* preset) {
    return preset_steps(resolve_run("listops", "linformer", preset, 0, {}, {"train.steps=7"}));
  };
  EXPECT_EQ(steps("a"), 30);
  EXPECT_EQ(steps("b"), 50) << "as the model's file has it";
  RunConfig run = resolve_run("listops", "linformer", "a", 0, {}, {});
  run.preset = "gone";
  EXPECT_EQ(preset_steps(run), std::nullopt);
}

TEST(RunConfig, NamesTheNearestOfWhatItDoesNotKnow) {
  const auto error_with = [](const std::vector<std::string>& sets) {
    return error_of([&] { (void)small("listops", "linformer", sets); });
  };
  EXPECT_THAT(error_of([] { (void)small("lisops", "linformer"); }),
              AllOf(HasSubstr("unknown task 'lisops'"), HasSubstr("'listops'?")));
  EXPECT_THAT(error_of([] { (void)small("listops", "linfomer"); }),
              AllOf(HasSubstr("unknown model 'linfomer'"), HasSubstr("'linformer'?")));
  EXPECT_THAT(error_of([] { (void)resolve_run("listops", "linformer", "realease", 0, {}, {}); }),
              AllOf(HasSubstr("tasks/listops.toml"), HasSubstr("preset 'realease'"),
                    HasSubstr("'release'?")));
  EXPECT_THAT(error_with({"train.stesp=1"}),
              AllOf(HasSubstr("--set train.stesp"), HasSubstr("unknown key 'train.stesp'"),
                    HasSubstr("'train.steps'?")));
  EXPECT_THAT(error_with({"mixer.rnk=1"}), AllOf(HasSubstr("--set mixer.rnk"), HasSubstr("rank")));
  EXPECT_THAT(error_with({"task.lenght=1"}), HasSubstr("'task.length'?"));
  EXPECT_THAT(error_with({"model.layer=1"}), HasSubstr("'model.layers'?"));
  EXPECT_THAT(error_with({"tran.steps=1"}),
              AllOf(HasSubstr("unknown section 'tran'"), HasSubstr("'train.steps'?")));
  EXPECT_THAT(error_with({"trian.stpes=1"}), HasSubstr("'train.steps'?"));
  EXPECT_THAT(error_with({"stpes=1"}), HasSubstr("'train.steps'?"));
  EXPECT_THAT(error_with({"steps=1"}),
              AllOf(HasSubstr("unknown setting 'steps'"), HasSubstr("'train.steps'?")));
  EXPECT_THAT(error_with({"train=1"}), HasSubstr("train is not a table"));
  EXPECT_THAT(error_with({"train.steps=0"}),
              AllOf(HasSubstr("--set train.steps"), HasSubstr(">= 1")));
  EXPECT_THAT(error_with({"train.steps=ten"}), HasSubstr("an integer"));
  EXPECT_THAT(error_with({"train.learning_rate=inf"}), HasSubstr("a finite number"));
  EXPECT_THAT(error_with({"train.schedule=linear"}), HasSubstr("rsqrt, cosine, constant"));
}

TEST(RunConfig, NamesTheLineOfAMistakeInAFile) {
  const auto error_with = [](const char* task_toml, const char* model_toml) {
    const OwnConfigs configs(task_toml, model_toml);
    return error_of([] { (void)small("listops", "linformer"); });
  };
  const char* good = "[small.task]\nlength = 100\n";
  EXPECT_EQ(error_with(good, "[mixer]\nrank = 4\n[small.mixer]\n[small.listops.train]\n"), "");
  EXPECT_THAT(error_with("[small.task]\n\nlenth = 1", ""),
              AllOf(HasSubstr("listops.toml:3"), HasSubstr("'task.length'?")));
  EXPECT_THAT(error_with("[small.trian]\nsteps = 1", ""),
              AllOf(HasSubstr("listops.toml:1"), HasSubstr("'train.steps'?")));
  EXPECT_THAT(error_with(good, "\n[mixr]\nrank = 4"),
              AllOf(HasSubstr("linformer.toml:2"), HasSubstr("'mixer.rank'?")));
  EXPECT_THAT(error_with(good, "[smal.mixer]\nrank = 4"),
              AllOf(HasSubstr("linformer.toml:1"), HasSubstr("'small'?")));
  EXPECT_THAT(error_with(good, "[small.listps.train]\nsteps = 4"),
              AllOf(HasSubstr("linformer.toml:1"), HasSubstr("'listops'?")));
}

void expect_round_trip(const RunConfig& run) {
  const ConfigTable table = run.to_table();
  const std::string text = to_toml(table);
  const RunConfig again = RunConfig::from_table(parse_toml(text, "config.toml"));
  EXPECT_EQ(to_toml(again.to_table()), text);
  EXPECT_EQ(canonical_text(again.to_table()), canonical_text(table));
  EXPECT_EQ(again.seed, run.seed);
  EXPECT_EQ(again.train.learning_rate, run.train.learning_rate);
  EXPECT_EQ(again.train.eps, run.train.eps);
}

TEST(RunConfig, SurvivesItsTomlFile) {
  expect_round_trip(resolve_run("listops", "linformer", "small", 12345678901, {},
                                {"train.learning_rate=0.1", "train.eps=1.2345678901234567e-11",
                                 "mixer.rank=3", "train.trim_padding=false"}));
  expect_round_trip(small("listops", "linear_transformer", {"mixer.eps=1", "train.eps=1"}));
}

TEST(RunConfig, OfAFileWithAMistakeIsRefused) {
  ConfigTable table = small("listops", "linformer").to_table();
  const auto error_with = [&](const char* set) {
    ConfigTable changed = table;
    apply_override(changed, set);
    return error_of([&] { (void)RunConfig::from_table(changed); });
  };
  EXPECT_EQ(error_with("train.steps=7"), "");
  EXPECT_THAT(error_with("run.sed=1"), HasSubstr("'run.seed'?"));
  EXPECT_THAT(error_with("run.task=texd"), HasSubstr("'text'?"));
  EXPECT_THAT(error_with("mixr.rank=1"), HasSubstr("'mixer.rank'?"));
  EXPECT_THAT(error_of([] { (void)RunConfig::from_table({}); }), HasSubstr("unknown task ''"));
}

TEST(RunConfig, LaterSettingsAreWrittenOnlyWhenTheyAreSet) {
  const auto settings = [](const std::string& model, const std::vector<std::string>& sets) {
    return setting_texts(resolve_run("listops", model, "small", 0, {}, sets).to_table());
  };
  for (const char* model : {"transformer", "local", "bigbird", "linear_transformer", "performer"}) {
    EXPECT_FALSE(settings(model, {"mixer.causal=false"}).contains("mixer.causal")) << model;
    EXPECT_EQ(settings(model, {"mixer.causal=true", "model.pooling=mean"}).at("mixer.causal"),
              "true");
  }
  EXPECT_TRUE(settings("longformer", {}).contains("mixer.causal")) << "which it had from the start";
  EXPECT_FALSE(settings("s4d", {}).contains("task.tree"));
  EXPECT_EQ(settings("s4d", {"task.tree=spine", "task.filler=2"}).at("task.filler"), "2");
  const RunConfig spine = resolve_run("listops", "s4d", "small", 0, {}, {"task.tree=spine"});
  EXPECT_EQ(config_hash(RunConfig::from_table(spine.to_table()).to_table()),
            config_hash(spine.to_table()));
}

TEST(RunConfig, RefusesAClassifierThatReadsOneToken) {
  const auto error_with = [](const std::string& model, const std::vector<std::string>& sets) {
    return error_of([&] { (void)resolve_run("listops", model, "small", 0, {}, sets); });
  };
  for (const char* model : {"longformer", "reformer", "synthesizer", "sparse_transformer"}) {
    EXPECT_THAT(error_with(model, {"mixer.causal=true"}), HasSubstr("model.pooling=mean"));
    EXPECT_THAT(error_with(model, {"mixer.causal=true", "model.pooling=cls"}), HasSubstr("cls"));
    EXPECT_EQ(error_with(model, {"mixer.causal=true", "model.pooling=mean"}), "");
  }
  EXPECT_EQ(error_with("sparse_transformer", {"mixer.causal=true", "mixer.global_first=true"}), "");
  size_t num_one_way = 0;
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    const std::vector<FieldInfo> fields = spec->describe();
    if (std::ranges::find(fields, "bidirectional", &FieldInfo::name) == fields.end()) continue;
    const std::string model(spec->name);
    ++num_one_way;
    EXPECT_THAT(error_with(model, {"mixer.bidirectional=false", "model.pooling=first"}),
                HasSubstr("mixer.bidirectional"));
    EXPECT_EQ(error_with(model, {"mixer.bidirectional=false", "model.pooling=mean"}), "");
  }
  EXPECT_GE(num_one_way, 11u);
}

TEST(RunConfig, RefusesNumbersOfTokensBeyondAnyLength) {
  for (const auto& [model, key] : {std::pair{"local", "block"},
                                   {"bigbird", "block"},
                                   {"sinkhorn", "block"},
                                   {"sinkhorn", "iterations"},
                                   {"sparse_transformer", "stride"},
                                   {"reformer", "chunk"}}) {
    const std::string set = std::string("mixer.") + key + "=9223372036854775807";
    const auto resolve = [&, model = model] {  // clang++ 14 captures no binding by reference
      (void)resolve_run("listops", model, "small", 0, {}, {set});
    };
    EXPECT_THAT(error_of(resolve), HasSubstr(key));
  }
}

// A run of a version that did not know a setting yet.
TEST(StoredRun, IsReadWithTheDefaultsOfSettingsAddedSinceAndRefusedWhenChanged) {
  const ScratchFolder scratch;
  const RunFolder folder{scratch.path()};
  RunRecord record;
  record.task = "listops";
  record.model = "linformer";
  record.preset = "small";
  record.config = resolve_run("listops", "linformer", "small", 0, {}, {"train.steps=7"}).to_table();
  record.config.table("train").erase("prefetch");
  record.config_hash = config_hash(record.config);
  write_record(record, folder.record());
  std::ofstream(folder.config()) << to_toml(record.config);
  const StoredRun run = read_run(folder);
  EXPECT_EQ(run.config.train.steps, 7);
  EXPECT_EQ(run.config.train.prefetch, TrainConfig().prefetch);
  record.config.table("train").erase("recompute");
  std::ofstream(folder.config()) << to_toml(record.config);
  EXPECT_THAT(error_of([&] { (void)read_run(folder); }),
              HasSubstr("differs from the settings that the run started with"));
}

// The weights of one have to fit the other.
TEST(RunConfig, OfPretrainingHasModelAndDataOfFineTuning) {
  int count = 0;
  for (const tasks::TaskSpec* spec : tasks::all_tasks()) {
    const std::string task(spec->name);
    for (const std::string& model : mixers::mixer_names()) {
      const auto presets = preset_names(task, model);
      const auto has = [&](const char* preset) { return std::ranges::count(presets, preset) > 0; };
      EXPECT_EQ(has(kPretrainingPreset), has(kFineTuningPreset));
      if (!has(kPretrainingPreset)) continue;
      SCOPED_TRACE(task + " " + model);
      ++count;
      const RunConfig before = resolve_run(task, model, kPretrainingPreset, 0, {}, {}),
                      after = resolve_run(task, model, kFineTuningPreset, 0, {}, {});
      EXPECT_TRUE(before.train.is_masked());
      EXPECT_FALSE(after.train.is_masked());
      expect_round_trip(before);
      for (const char* section : {"task", "model", "mixer"}) {
        const auto text = [&](const RunConfig& run) {
          return canonical_text(*run.to_table().find(section)->as_table());
        };
        EXPECT_EQ(text(before), text(after)) << section;
      }
    }
  }
  EXPECT_EQ(count, 11);
  EXPECT_EQ(resolve_run("text", "transformer", kPretrainingPreset, 0, {}, {}).train.steps, 25000);
}

TEST(RunConfig, OfEveryPresetTaskAndModelResolvesAndBuilds) {
  for (const tasks::TaskSpec* task : tasks::all_tasks()) {
    const auto presets = preset_names(std::string(task->name));
    if (task->settings_of) {
      EXPECT_THAT(presets, ElementsAre("release", "small")) << task->name;
    } else if (task->is_diagnostic) {
      EXPECT_THAT(presets, ElementsAre("paper", "small")) << task->name;
    } else {
      EXPECT_THAT(presets, ElementsAre("paper", "release", "small")) << task->name;
    }
    for (const std::string& preset : presets) {
      for (const std::string& model : mixers::mixer_names()) {
        SCOPED_TRACE(preset + " " + std::string(task->name) + " " + model);
        const RunConfig run = resolve_run(std::string(task->name), model, preset, 0, {}, {});
        expect_round_trip(run);
        EXPECT_GT(run.make_task()->shape().length, 0);
        // The published sizes have up to 20 million parameters; fairness_test counts some of them.
        if (preset != "small") continue;
        EXPECT_GT(count_parameters(run), 0);
      }
    }
  }
}

TEST(RunConfig, RefusesStepsBesideWhatDecidesThem) {
  const auto refusal = [](const std::vector<std::string>& sets) {
    return error_of([&] { resolve_run("listops", "local", "small", 0, {}, sets); });
  };
  EXPECT_THAT(refusal({"train.steps=10", "train.epochs=2"}),
              HasSubstr("is set, and train.epochs decides the number of steps"));
  EXPECT_THAT(refusal({"train.examples=100", "train.steps=10"}), HasSubstr("train.examples=0"));
  EXPECT_EQ(refusal({"train.epochs=2"}), "");
  EXPECT_EQ(refusal({"train.steps=10", "train.epochs=0"}), "");
}

}  // namespace
}  // namespace lra::training
