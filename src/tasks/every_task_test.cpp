// Tests of the rules that every task must keep; they run over the table of tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/parallel.h"
#include "data/files.h"
#include "io/toml.h"
#include "tasks/all.h"
#include "tasks/image/test_cifar.h"
#include "tasks/retrieval/test_pairs.h"
#include "tasks/text/test_reviews.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

// All but the last, which is for data of the user's own.
std::span<const TaskSpec* const> published_tasks() {
  return all_tasks().first(all_tasks().size() - 1);
}

// Small data of a task in these tests.
struct Example {
  const char* settings;  // [task] as TOML
  // Hash of the data for seeds 0, 1 and 2 (of the one fixed source where nothing is drawn). A
  // change here changes everybody's data: raise the task's version with it.
  std::vector<std::string> golden;
  bool exports = true;  // false: the official layout cannot be had back
};

const std::map<std::string_view, Example>& examples() {
  static const std::map<std::string_view, Example> all = {
      {"listops",
       {"",
        {"433debc25238aa36692fb032a6e92e98", "123472a6afc82290793edcde3b7f463d",
         "7f6b6b69bd74aea2d3234866b109a302"}}},
      {"image",
       {"num_train = 90\nnum_val = 10\nnum_test = 20",
        {"905697a58603837f2826659c168e4149"},
        false}},
      {"retrieval",
       {"num_train = 100\nnum_val = 40\nnum_test = 40", {"49142a95beef8592486b7b5c7e06fe1a"}}},
      {"pathfinder",
       {"",
        {"8ade8e04e07b1c146320f419e223e2d0", "d11cdd6184550f81704885206a34403e",
         "5fde6782dce8c210aa5466d717f0aae5"}}},
      {"pathfinder64",
       {"difficulty = \"intermediate\"",
        {"c67e41770a8a8e4d11da2d2b97cfc9ba", "1d4a50e8a34ec350e14c7ca92582693d",
         "5ac9ab255e3627fd47db55da58950e93"}}},
      {"pathx",
       {"",
        {"a504df7d1c20112a956067a440ee863c", "91c3676563b4d98195c3e212594d52af",
         "6ea2f83b1fdcd950c9511f04980825fd"}}},
      {"pathfinder256",
       {"difficulty = \"easy\"",
        {"cbccdad00bbafd7719aaa7214707fefd", "b455e0deaf05754e8bc88644bdb0d5b6",
         "93b619b85ec6627575d760d4b4243f16"}}},
      {"recall",
       {"length = 16\npairs = 2\nvocabulary = 64",
        {"7bcc66162c103a68830d1d90dda99fd8", "4a453090c185856702cb4118cc1a747b",
         "caa787fe4368dd7681282bd0b875374c"},
        false}},
      {"state",
       {"length = 12\nmin_length = 2",
        {"df078a0b8fac1699387dd0ade4ea364b", "f380ca4a5b5e58bb5119d13db5fd7d02",
         "ff3672079fa58c40b1068761289f1439"},
        false}},
      {"text", {"num_train = 80\nnum_test = 80", {"a4d7f1bed535d3935a68303a82b6edb4"}}},
  };
  return all;
}

const Example& example_of(const TaskSpec& spec) {
  const auto found = examples().find(spec.name);
  if (found != examples().end()) return found->second;
  throw std::runtime_error("task '" + std::string(spec.name) +
                           "' has no example; add one to every_task_test.cpp, with golden hashes "
                           "\"?\", for which this test then prints the right ones");
}

std::unique_ptr<Task> make_task(const TaskSpec& spec) {
  return spec.make(parse_toml(example_of(spec).settings, "test"));
}

// Generates, or imports small official data.
void prepare(const TaskSpec& spec, const Task& task, const TestFolder& root,
             const std::string& name, uint64_t seed) {
  QuietProgress progress;
  if (task.can_generate()) {
    const MakeOptions options{
        .out = root.path(name), .seed = seed, .num_train = 120, .num_val = 40, .num_test = 40};
    EXPECT_EQ(task.num_to_make(options), 200);
    task.make(options, progress);
    return;
  }
  const std::string raw = root.path("raw");
  if (!std::filesystem::exists(raw)) {
    if (spec.name == "text") write_small_imdb(raw, 40);
    if (spec.name == "image") write_small_cifar(raw);
    if (spec.name == "retrieval") write_small_pairs(raw);
  }
  task.import(task.find_sources(raw), root.path(name), progress).writer.publish();
}

class EveryTask : public ::testing::TestWithParam<const TaskSpec*> {
 protected:
  const TaskSpec& spec() const { return *GetParam(); }
  TestFolder root_;
};

TEST_P(EveryTask, DataIsThatOfTheGoldenHashes) {
  const auto task = make_task(spec());
  uint64_t seed = 0;
  for (const std::string& golden : example_of(spec()).golden) {
    const std::string name = "seed" + std::to_string(seed);
    prepare(spec(), *task, root_, name, seed);
    EXPECT_EQ(Dataset::open(root_.path(name)).hash(), golden) << "seed " << seed;
    ++seed;
  }
}

TEST_P(EveryTask, AnyNumberOfThreadsGivesTheSameBytes) {
  const auto task = make_task(spec());
  const int before = num_threads();
  std::set<std::string> hashes;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    const std::string name = "threads" + std::to_string(threads);
    prepare(spec(), *task, root_, name, 7);
    hashes.insert(Dataset::open(root_.path(name)).hash());
  }
  set_num_threads(before);
  EXPECT_EQ(hashes.size(), 1U);
}

TEST_P(EveryTask, TokensLabelsAndSplitsFitTheShape) {
  const auto task = make_task(spec());
  prepare(spec(), *task, root_, "data", 1);
  const Dataset dataset = open_dataset(spec(), *task, root_.path("data"));
  const TaskShape shape = task->shape();
  ASSERT_EQ(dataset.manifest().num_towers, shape.num_towers);
  std::set<std::vector<int32_t>> train_and_test;
  size_t num_examples = 0;
  for (const char* name : {"train", "val", "test"}) {
    const Split split = task->split(dataset, name);
    ASSERT_GT(split.size(), 0);
    for (int64_t i = 0; i < split.size(); ++i) {
      ASSERT_GE(split.label(i), 0);
      ASSERT_LT(split.label(i), shape.num_classes);
      std::vector<int32_t> ids;
      for (int64_t tower = 0; tower < shape.num_towers; ++tower) {
        std::vector<int32_t> sequence(static_cast<size_t>(split.sequence_length(i, tower)));
        split.read_tokens(i, tower, sequence);
        ids.insert(ids.end(), sequence.begin(), sequence.end());
      }
      for (const int32_t id : ids) {
        ASSERT_GE(id, shape.has_padding ? 1 : 0);
        ASSERT_LT(id, shape.vocabulary);
      }
      if (name == std::string("val") && task->validation() == "test") continue;
      ++num_examples;
      train_and_test.insert(ids);
    }
  }
  EXPECT_EQ(train_and_test.size(), num_examples) << "splits are not disjoint";
}

TEST_P(EveryTask, CheckPassesOnGoodDataAndRenderShowsIt) {
  const auto task = make_task(spec());
  prepare(spec(), *task, root_, "data", 1);
  const Dataset dataset = Dataset::open(root_.path("data"));
  const std::vector<checks::Fact> facts = task->check(dataset);
  EXPECT_FALSE(facts.empty());
  for (const checks::Fact& fact : facts) EXPECT_TRUE(fact.ok) << fact.name << ": " << fact.detail;
  const Split train = task->split(dataset, "train");
  for (const int64_t i : {int64_t{0}, train.size() - 1}) {
    const std::string text = task->render(train, i);
    EXPECT_GT(text.size(), 20U);
    EXPECT_TRUE(text.ends_with('\n'));
    for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  }
}

TEST_P(EveryTask, ExportIsReadBackAsTheSameData) {
  const auto task = make_task(spec());
  prepare(spec(), *task, root_, "data", 1);
  const Dataset dataset = Dataset::open(root_.path("data"));
  if (!example_of(spec()).exports) {
    EXPECT_NE(error_of([&] { task->export_official(dataset, root_.path("official")); }), "");
    return;
  }
  task->export_official(dataset, root_.path("official"));
  QuietProgress progress;
  task->import(task->find_sources(root_.path("official")), root_.path("again"), progress)
      .writer.publish();
  EXPECT_EQ(Dataset::open(root_.path("again")).hash(), dataset.hash());
}

// Files that are few are needed one and all; of many, as reviews and images, one may be missing.
std::vector<std::string> parts_of(const std::string& raw) {
  namespace fs = std::filesystem;
  std::vector<std::string> parts;
  for (const auto& entry : fs::recursive_directory_iterator(raw)) {
    const fs::path path = entry.path();
    const auto siblings =
        std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator());
    if (siblings <= 6) parts.push_back(path.lexically_relative(raw).string());
  }
  // Copies of these have the task's own splits without it, as the official data does.
  std::erase_if(parts, [](const std::string& part) { return part.ends_with("splits.txt"); });
  return parts;
}

// Whatever is missing, no smaller data set comes of it and none is generated instead.
TEST_P(EveryTask, IncompleteSourcesAreRefused) {
  namespace fs = std::filesystem;
  const auto task = make_task(spec());
  prepare(spec(), *task, root_, "data", 1);
  const std::string raw = root_.path("raw"), broken = root_.path("broken");
  if (!fs::exists(raw) && !example_of(spec()).exports) GTEST_SKIP() << "reads no files";
  if (!fs::exists(raw)) task->export_official(Dataset::open(root_.path("data")), raw);
  const std::vector<std::string> parts = parts_of(raw);
  size_t num_refused = 0;
  for (const std::string& part : parts) {
    fs::remove_all(broken);
    fs::copy(raw, broken, fs::copy_options::recursive);
    fs::remove_all(broken + "/" + part);
    QuietProgress progress;
    bool is_found = true;
    const std::string error = error_of([&] {
      const auto sources = task->find_sources(broken);
      is_found = !sources.empty();
      if (is_found) task->import(sources, root_.path("imported"), progress).writer.publish();
    });
    // An empty folder has no data that could have been meant.
    const auto is_file = [](const fs::directory_entry& entry) { return entry.is_regular_file(); };
    const bool is_all = std::none_of(fs::recursive_directory_iterator(broken),
                                     fs::recursive_directory_iterator(), is_file);
    EXPECT_EQ(error.empty(), is_all) << part;
    EXPECT_EQ(is_found, !is_all) << part;
    num_refused += !error.empty();
  }
  EXPECT_GE(num_refused, 2U);
}

TEST_P(EveryTask, BaselinesBeginWithTheMajorityClass) {
  const auto task = make_task(spec());
  prepare(spec(), *task, root_, "data", 1);
  const auto baselines = task->baselines(Dataset::open(root_.path("data")));
  ASSERT_GE(baselines.size(), 2U);
  EXPECT_EQ(baselines[0].name, "majority");
  for (const checks::Baseline& baseline : baselines) {
    EXPECT_GT(baseline.accuracy, 0) << baseline.name;
    EXPECT_LE(baseline.accuracy, 1) << baseline.name;
  }
}

TEST_P(EveryTask, SpecSaysWhatPeopleNeedToKnow) {
  EXPECT_EQ(&find_task(spec().name), &spec());
  for (const std::string_view text : {spec().title, spec().summary, spec().paper}) {
    EXPECT_GE(text.size(), 10U);
    EXPECT_LT(text.size(), 100U);
  }
  EXPECT_GE(spec().version, 1);
  EXPECT_FALSE(spec().describe().empty());
  for (const FieldInfo& field : spec().describe()) EXPECT_FALSE(field.help.empty()) << field.name;
}

TEST_P(EveryTask, DataOfAnotherTaskIsRefused) {
  const auto task = make_task(spec());
  Manifest manifest;
  manifest.task = spec().name;
  manifest.task_version = spec().version;
  manifest.source = "generated";
  manifest.num_towers = task->shape().num_towers;
  manifest.token_offset = 1;
  const TaskShape shape = task->shape();
  const auto whole = static_cast<size_t>(shape.has_padding ? 1 : shape.length);
  const auto error_with = [&](const Manifest& wrong, int32_t label, uint8_t token,
                              size_t length = 0) {
    const TestFolder root;
    DatasetWriter writer(root.path("data"), wrong, 0);
    writer.begin_split("train");
    const std::vector<uint8_t> tokens(length ? length : whole, token);
    writer.add(label, std::vector<std::span<const uint8_t>>(static_cast<size_t>(wrong.num_towers),
                                                            std::span(tokens)));
    writer.finish();
    return error_of([&] { open_dataset(spec(), *task, root.path("data")); });
  };
  EXPECT_EQ(error_with(manifest, 0, 0), "");
  // Readers of images count on the number of pixels.
  for (const size_t other : {whole - 1, whole + 1}) {
    if (shape.has_padding) break;
    EXPECT_THAT(error_with(manifest, 0, 0, other), HasSubstr("tokens"));
  }
  EXPECT_THAT(error_with(manifest, static_cast<int32_t>(task->shape().num_classes), 0),
              HasSubstr("has label"));
  Manifest wrong = manifest;
  wrong.task = "other";
  EXPECT_THAT(error_with(wrong, 0, 0), HasSubstr("of task 'other'"));
  wrong = manifest;
  wrong.task_version += 1;
  EXPECT_THAT(error_with(wrong, 0, 0), HasSubstr("task version"));
  wrong = manifest;
  wrong.num_towers = 3 - manifest.num_towers;
  EXPECT_THAT(error_with(wrong, 0, 0), HasSubstr("sequences per example"));
  wrong = manifest;
  wrong.token_bytes = 2;
  EXPECT_THAT(error_of([&] {
                const TestFolder root;
                DatasetWriter(root.path("data"), wrong, 0).finish();
                open_dataset(spec(), *task, root.path("data"));
              }),
              HasSubstr("bytes per token"));
  wrong = manifest;
  wrong.token_offset = task->shape().vocabulary;
  EXPECT_THAT(error_with(wrong, 0, 0), HasSubstr("has token"));
}

INSTANTIATE_TEST_SUITE_P(Tasks, EveryTask,
                         ::testing::ValuesIn(published_tasks().begin(), published_tasks().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(AllTasks, EveryTaskHasAnExampleHere) {
  EXPECT_EQ(examples().size(), published_tasks().size());
}

TEST(AllTasks, AWrongNameGetsASuggestion) {
  EXPECT_EQ(error_of([] { find_task("lisops"); }),
            "unknown task 'lisops'; did you mean 'listops'?");
  EXPECT_EQ(error_of([] { find_task("pathfinder32"); }),
            "unknown task 'pathfinder32'; did you mean 'pathfinder'?");
  EXPECT_EQ(error_of([] { find_task("pathfinder128"); }),
            "unknown task 'pathfinder128'; did you mean 'pathx'?");
  EXPECT_EQ(error_of([] { find_task("imdb"); }), "unknown task 'imdb'; did you mean 'text'?");
}

TEST(AllTasks, TasksThatAreNotDrawnCannotBeMade) {
  QuietProgress progress;
  const auto task = make_task(find_task("text"));
  EXPECT_FALSE(task->can_generate());
  EXPECT_THAT(error_of([&] { task->make({.out = "unused"}, progress); }), HasSubstr("import"));
}

}  // namespace
}  // namespace lra::tasks
