#include "training/run/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "models/classifier.h"
#include "ops/test_tensors.h"
#include "training/run/test_runs.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr const char* kWeight = "encoder.layers.0.norm.weight";

FlatParameters parameters(uint64_t seed, const std::string& name = kWeight,
                          std::vector<int64_t> shape = {3, 4}) {
  FlatParameters flat({{name, at::zeros(shape)}, {"head.bias", at::zeros({5})}});
  flat.values.copy_(ops::random_tensor({flat.values.numel()}, seed, at::kFloat));
  flat.m.copy_(ops::random_tensor({flat.m.numel()}, seed + 1, at::kFloat));
  flat.v.copy_(ops::random_tensor({flat.v.numel()}, seed + 2, at::kFloat).abs());
  return flat;
}

TrainProgress progress_at(int64_t step) {
  return {.step = step,
          .tokens = 1000 * step,
          .computed_tokens = 1100 * step,
          .last_eval_step = step - 1,
          .best_accuracy = 1.0 / 3,
          .best_step = 1,
          .mean = {.loss_sum = 5.0 / 7, .correct = 3, .count = 12}};
}

// Weights, moments: every bit.
std::string bits_of(const FlatParameters& flat) {
  std::string bits;
  for (const at::Tensor& t : {flat.values, flat.m, flat.v}) {
    bits.append(static_cast<const char*>(t.const_data_ptr()), t.nbytes());
  }
  return bits;
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class Checkpoint : public ::testing::Test {
 protected:
  std::string file(int64_t step, const std::string& name) const {
    return store_.folder_of("step_" + std::to_string(step)) + "/" + name + ".safetensors";
  }
  std::optional<TrainProgress> load(FlatParameters& target) {
    problems_.clear();
    return store_.load_latest(target, &problems_);
  }
  // Reason why load_latest refuses the only checkpoint; "" if it takes it.
  std::string refusal(FlatParameters target = parameters(50)) {
    const auto loaded = load(target);
    EXPECT_EQ(loaded.has_value(), problems_.empty());
    return problems_.empty() ? "" : problems_.front();
  }

  ScratchFolder scratch_;
  const RunIdentity run_ = {.task = "text",
                            .task_version = 2,
                            .model = "local",
                            .seed = 7,
                            .config_hash = "c0",
                            .data_hash = "d0"};
  CheckpointStore store_{scratch_.file("checkpoints"), 3, {run_}};
  std::vector<std::string> problems_;
};

TEST_F(Checkpoint, RestoresEveryBit) {
  FlatParameters saved = parameters(1);
  saved.values[0] = -0.0f;
  saved.values[1] = std::numeric_limits<float>::denorm_min();
  saved.m[2] = std::numeric_limits<float>::quiet_NaN();
  const std::string hash = store_.save(saved, progress_at(7), true);
  EXPECT_EQ(hash, weights_hash(saved));
  EXPECT_EQ(hash.size(), 32u);
  FlatParameters loaded = parameters(20);
  const auto progress = load(loaded);
  ASSERT_TRUE(progress.has_value());
  EXPECT_TRUE(*progress == progress_at(7));
  EXPECT_EQ(bits_of(loaded), bits_of(saved));
  EXPECT_TRUE(problems_.empty());

  FlatParameters weights = parameters(20);
  EXPECT_TRUE(load_weights(file(7, "model"), weights, {{run_}}).progress == progress_at(7));
  EXPECT_TRUE(at::equal(weights.values, saved.values));
  EXPECT_TRUE(at::equal(weights.v, parameters(20).v)) << "load_weights leaves the moments alone";
}

TEST_F(Checkpoint, NamesTensorsAsPyTorchDoes) {
  const RunConfig run = tiny_run({"model.layers=2"});
  const models::SequenceClassifier model(run.make_task()->shape(), run.model_config,
                                         run.mixer_spec(), run.mixer_settings, run.seed);
  store_.save(FlatParameters(model), progress_at(1), false);
  const auto weights = SafetensorsFile::open(file(1, "model"));
  const auto moments = SafetensorsFile::open(file(1, "optimizer"));
  EXPECT_EQ(weights.metadata().at("format"), "pt");
  EXPECT_EQ(moments.tensors().size(), 2 * weights.tensors().size());
  for (const char* name : {"encoder.layers.0.norm1.weight", "encoder.layers.1.mlp.fc1.weight",
                           "encoder.layers.1.mlp.fc2.bias"}) {
    const TensorView* weight = weights.find(name);
    ASSERT_NE(weight, nullptr) << name;
    for (const char* prefix : {"m.", "v."}) {
      const TensorView* moment = moments.find(prefix + std::string(name));
      ASSERT_NE(moment, nullptr) << prefix << name;
      EXPECT_EQ(moment->shape, weight->shape);
    }
  }
  EXPECT_THAT(weights.find("encoder.layers.1.mlp.fc1.weight")->shape, ElementsAre(16, 16));
}

TEST_F(Checkpoint, KeepsTheNewestAndTheBest) {
  for (int64_t step = 1; step <= 6; ++step) {
    TrainProgress progress = progress_at(step);
    progress.best_step = step < 2 ? 1 : 2;
    store_.save(parameters(static_cast<uint64_t>(step)), progress, step <= 2);
  }
  EXPECT_THAT(names_in(scratch_.file("checkpoints")),
              UnorderedElementsAre("step_2", "step_4", "step_5", "step_6", "latest", "best"));
  EXPECT_EQ(fs::read_symlink(store_.folder_of("latest")), "step_6");
  EXPECT_EQ(fs::read_symlink(store_.folder_of("best")), "step_2");
  FlatParameters best = parameters(50);
  EXPECT_EQ(
      load_weights(store_.folder_of("best") + "/model.safetensors", best, {{run_}}).progress.step,
      2);
  EXPECT_TRUE(at::equal(best.values, parameters(2).values));
}

TEST_F(Checkpoint, KeepsAnOldOneThatIsStillNeeded) {
  for (int64_t step = 1; step <= 6; ++step) {
    store_.save(parameters(static_cast<uint64_t>(step)), progress_at(step), step == 1, 2);
  }
  FlatParameters loaded = parameters(50);
  EXPECT_EQ(store_.load(2, loaded).step, 2);
  EXPECT_EQ(bits_of(loaded), bits_of(parameters(2)));
  EXPECT_THROW((void)store_.load(3, loaded), Error);
}

TEST_F(Checkpoint, KnowsOfBadStepsOnceThereWereAny) {
  store_.save(parameters(1), progress_at(1), false);
  const auto text = [&](int64_t step) {
    return SafetensorsFile::open(file(step, "model")).metadata().at("lra.progress");
  };
  EXPECT_EQ(text(1).find("health"), std::string::npos) << "other checkpoints stay as they were";
  TrainProgress progress = progress_at(2);
  progress.health = {.skipped = 1,
                     .skipped_in_a_row = 2,
                     .roll_backs = 3,
                     .undone = 4,
                     .mean_loss = 1.0 / 3,
                     .mean_norm = 1.0 / 7,
                     .num_good = 5};
  store_.save(parameters(2), progress, false);
  FlatParameters loaded = parameters(50);
  EXPECT_TRUE(load(loaded) == progress);
}

TEST_F(Checkpoint, ReplacesAStepThatIsSavedTwice) {
  store_.save(parameters(1), progress_at(4), false);
  store_.save(parameters(2), progress_at(4), true);
  FlatParameters loaded = parameters(50);
  ASSERT_TRUE(load(loaded).has_value());
  EXPECT_EQ(bits_of(loaded), bits_of(parameters(2)));
  EXPECT_THAT(names_in(scratch_.file("checkpoints")),
              UnorderedElementsAre("step_4", "latest", "best"));
}

TEST_F(Checkpoint, OfNoStepAtAllIsNothing) {
  FlatParameters target = parameters(50);
  EXPECT_FALSE(load(target).has_value());
  EXPECT_TRUE(problems_.empty());
  EXPECT_EQ(bits_of(target), bits_of(parameters(50)));
}

TEST_F(Checkpoint, IgnoresWhatACrashLeft) {
  store_.save(parameters(1), progress_at(4), false);
  for (const char* name : {"step_9.partial", "step_", "step_x", "step_8.partial"}) {
    fs::create_directories(store_.folder_of(name));
    write_bytes(store_.folder_of(name) + "/model.safetensors", "half");
  }
  FlatParameters loaded = parameters(50);
  const auto progress = load(loaded);
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(progress->step, 4);
  EXPECT_TRUE(problems_.empty());
  store_.save(parameters(2), progress_at(9), false);
  EXPECT_EQ(load(loaded)->step, 9) << "the leftover is not in the way of its own step";
}

TEST_F(Checkpoint, RefusesEveryTruncatedFile) {
  store_.save(parameters(1), progress_at(4), false);
  for (const char* name : {"model", "optimizer"}) {
    const std::string path = file(4, name), whole = read_file(path, 1 << 20);
    for (size_t size = 0; size < whole.size(); size += 7) {
      write_bytes(path, whole.substr(0, size));
      EXPECT_THAT(refusal(), StartsWith(path)) << size;
    }
    write_bytes(path, whole + " ");
    EXPECT_THAT(refusal(), StartsWith(path));
    write_bytes(path, whole);
    EXPECT_EQ(refusal(), "");
  }
}

TEST_F(Checkpoint, RefusesAFlippedBitAnywhere) {
  store_.save(parameters(1), progress_at(4), false);
  for (const char* name : {"model", "optimizer"}) {
    const std::string path = file(4, name), whole = read_file(path, 1 << 20);
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 7)));
      write_bytes(path, damaged);
      EXPECT_THAT(refusal(), HasSubstr(scratch_.path())) << name << " byte " << i;
    }
    write_bytes(path, whole);
    EXPECT_EQ(refusal(), "");
  }
}

TEST_F(Checkpoint, OfAnotherModelIsRefusedByTheNameOfATensor) {
  store_.save(parameters(1), progress_at(4), false);
  EXPECT_THAT(refusal(parameters(50, "encoder.other")),
              AllOf(StartsWith(scratch_.path()), HasSubstr("'encoder.other' is missing")));
  EXPECT_THAT(refusal(parameters(50, kWeight, {4, 3})),
              AllOf(StartsWith(scratch_.path()), HasSubstr(kWeight), HasSubstr("shape")));
  EXPECT_THAT(refusal(FlatParameters({{kWeight, at::zeros({3, 4})}})),
              AllOf(StartsWith(scratch_.path()), HasSubstr("4 tensors; expected 2")));
}

TEST_F(Checkpoint, IsRefusedWhenItIsNoneOfOurs) {
  store_.save(parameters(1), progress_at(4), false);
  const std::vector<float> data(12);
  write_safetensors(file(4, "model"), {{.name = kWeight,
                                        .dtype = Dtype::kF32,
                                        .shape = {3, 4},
                                        .data = std::as_bytes(std::span(data))},
                                       {.name = "head.bias",
                                        .dtype = Dtype::kF32,
                                        .shape = {5},
                                        .data = std::as_bytes(std::span(data)).first(20)}});
  EXPECT_THAT(refusal(), AllOf(StartsWith(file(4, "model")), HasSubstr("lra did not write")));
}

TEST_F(Checkpoint, WithFilesOfTwoStepsIsRefused) {
  store_.save(parameters(1), progress_at(3), false);
  store_.save(parameters(2), progress_at(4), false);
  fs::copy_file(file(3, "optimizer"), file(4, "optimizer"), fs::copy_options::overwrite_existing);
  FlatParameters loaded = parameters(50);
  const auto progress = load(loaded);
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(progress->step, 3);
  EXPECT_THAT(problems_, ElementsAre(AllOf(HasSubstr("step_4"), HasSubstr("step 3"))));
}

TEST_F(Checkpoint, FallsBackToTheOneBeforeAndSaysWhy) {
  for (int64_t step = 3; step <= 5; ++step) {
    store_.save(parameters(static_cast<uint64_t>(step)), progress_at(step), false);
  }
  fs::remove(file(5, "optimizer"));
  write_bytes(file(4, "model"), "");
  FlatParameters loaded = parameters(50);
  const auto progress = load(loaded);
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(progress->step, 3);
  EXPECT_EQ(bits_of(loaded), bits_of(parameters(3)));
  EXPECT_THAT(problems_,
              ElementsAre(StartsWith(file(5, "optimizer")), StartsWith(file(4, "model"))));
}

// A folder that cannot be read is not an empty one: the run would begin again.
TEST_F(Checkpoint, IsNotPassedOverWhenTheDeviceFails) {
  FlatParameters loaded = parameters(50);
  write_bytes(scratch_.file("checkpoints"), "a file where the folder should be");
  EXPECT_THAT(error_of([&] { load(loaded); }), HasSubstr("checkpoints: cannot be searched"));
  fs::remove(scratch_.file("checkpoints"));
  store_.save(parameters(3), progress_at(3), false);
  store_.save(parameters(4), progress_at(4), false);
  fs::remove(file(4, "model"));
  fs::create_symlink(file(4, "model"), file(4, "model"));
  EXPECT_THAT(error_of([&] { load(loaded); }), HasSubstr("cannot be opened"))
      << "a link to itself is an error of the file system, not damage";
}

TEST_F(Checkpoint, LinksAreRepairedAndNeverPointAtNothing) {
  store_.save(parameters(3), progress_at(3), false);
  TrainProgress progress = progress_at(3);
  progress.best_step = 3;
  fs::remove(store_.folder_of("latest"));
  store_.repair_links(progress);
  EXPECT_EQ(fs::read_symlink(store_.folder_of("latest")), "step_3");
  EXPECT_EQ(fs::read_symlink(store_.folder_of("best")), "step_3");
  progress.best_step = 1;
  store_.repair_links(progress);
  store_.repair_links(progress);
  EXPECT_THAT(names_in(scratch_.file("checkpoints")), UnorderedElementsAre("step_3", "latest"));
}

TEST_F(Checkpoint, FoldersInThePlaceOfLinksGiveWay) {
  store_.save(parameters(3), progress_at(3), true);
  const std::string latest = store_.folder_of("latest");
  fs::remove_all(latest);
  fs::copy(store_.folder_of("step_3"), latest);
  store_.repair_links(progress_at(3));
  EXPECT_EQ(fs::read_symlink(latest), "step_3");
  fs::remove_all(latest);
  fs::rename(store_.folder_of("step_3"), latest);
  EXPECT_THAT(error_of([&] { store_.repair_links(progress_at(3)); }), HasSubstr("is a folder"));
  EXPECT_TRUE(fs::exists(latest + "/model.safetensors"));
}

TEST_F(Checkpoint, IsNotThrownOutByDamagedOnesOfLaterSteps) {
  CheckpointStore store(scratch_.file("checkpoints"), 1, {run_});
  store.save(parameters(1), progress_at(8), false);
  write_bytes(file(8, "model"), "damaged");
  store.save(parameters(2), progress_at(5), false);
  FlatParameters loaded = parameters(50);
  const auto progress = load(loaded);
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(progress->step, 5);
}

// Matching shapes do not prove whose weights these are.
TEST_F(Checkpoint, OfAnotherRunIsRefused) {
  store_.save(parameters(1), progress_at(5), true);
  const auto refusal_for = [&](const RunIdentity& run) {
    const CheckpointStore store(scratch_.file("checkpoints"), 3, {run});
    FlatParameters target = parameters(50);
    std::vector<std::string> problems;
    EXPECT_FALSE(store.load_latest(target, &problems));
    EXPECT_EQ(error_of([&] { store.load(5, target); }), problems.at(0));
    EXPECT_NE(error_of([&] { store.load_weights_of(5, target); }), "");
    EXPECT_NE(error_of([&] { load_weights(file(5, "model"), target, {{run}}); }), "");
    EXPECT_EQ(bits_of(target), bits_of(parameters(50)));
    return problems.at(0);
  };
  const auto changed = [&](auto field, auto value) {
    RunIdentity run = run_;
    run.*field = value;
    return refusal_for(run);
  };
  EXPECT_THAT(changed(&RunIdentity::task, "image"), HasSubstr("task 'text' instead of 'image'"));
  EXPECT_THAT(changed(&RunIdentity::model, "bigbird"),
              HasSubstr("model 'local' instead of 'bigbird'"));
  EXPECT_THAT(changed(&RunIdentity::task_version, 1), HasSubstr("task version 2 instead of 1"));
  EXPECT_THAT(changed(&RunIdentity::seed, 8), HasSubstr("seed 7 instead of 8"));
  EXPECT_THAT(changed(&RunIdentity::config_hash, "c1"), HasSubstr("settings c0 instead of c1"));
  EXPECT_THAT(changed(&RunIdentity::data_hash, "d1"), HasSubstr("data d0 instead of d1"));
  FlatParameters target = parameters(50);
  EXPECT_EQ(load_weights(file(5, "model"), target, {}).run, run_);
}

// Buffers of every dtype beside the float32 one, with values of the seed, and an empty parameter.
std::vector<models::Parameter> buffers_of_all_dtypes(uint64_t seed) {
  std::vector<models::Parameter> buffers;
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
        at::kChar, at::kByte, at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    const at::Tensor values = 50 * (1 + ops::random_tensor({2, 3}, seed));
    const bool is_complex = c10::isComplexType(type);
    buffers.push_back({std::string("buffers.") + toString(type),
                       (is_complex ? at::complex(values, -values) : values).to(type)});
  }
  buffers.push_back({"buffers.counter", at::full({}, static_cast<int64_t>(seed), at::kLong)});
  return buffers;
}

struct OfAllDtypes {
  explicit OfAllDtypes(uint64_t seed)
      : buffers(buffers_of_all_dtypes(seed)),
        flat({{"weight", ops::random_tensor({3}, seed, at::kFloat)}, {"memory", at::empty({0, 4})}},
             buffers) {}
  std::vector<models::Parameter> buffers;
  FlatParameters flat;
};

void expect_same_buffers(const OfAllDtypes& one, const OfAllDtypes& other) {
  EXPECT_TRUE(at::equal(one.flat.values, other.flat.values));
  for (size_t i = 0; i < one.buffers.size(); ++i) {
    EXPECT_TRUE(at::equal(one.buffers[i].tensor, other.buffers[i].tensor)) << one.buffers[i].name;
  }
}

TEST_F(Checkpoint, HasBuffersOfEveryDtypeAndEmptyParameters) {
  const OfAllDtypes saved(1);
  const std::string hash = store_.save(saved.flat, progress_at(7), true);
  EXPECT_EQ(hash, weights_hash(saved.flat));
  EXPECT_NE(hash, weights_hash(OfAllDtypes(2).flat));
  const auto stored = SafetensorsFile::open(file(7, "model"));
  EXPECT_EQ(stored.find("buffers.Long")->dtype, Dtype::kI64);
  EXPECT_EQ(stored.find("buffers.ComplexFloat")->dtype, Dtype::kF32);
  EXPECT_THAT(stored.find("buffers.ComplexFloat")->shape, ElementsAre(2, 3, 2));
  EXPECT_THAT(stored.find("memory")->shape, ElementsAre(0, 4));

  OfAllDtypes resumed(2), loaded(3), matched(4);
  ASSERT_TRUE(load(resumed.flat).has_value()) << problems_.at(0);
  expect_same_buffers(resumed, saved);
  EXPECT_EQ(load_weights(file(7, "model"), loaded.flat, {{run_}}).hash, hash);
  expect_same_buffers(loaded, saved);
  const MatchedWeights found = load_matching_weights(file(7, "model"), matched.flat);
  EXPECT_THAT(found.fresh, testing::IsEmpty());
  EXPECT_THAT(found.unused, testing::IsEmpty());
  expect_same_buffers(matched, saved);
  resumed.flat.copy_weights(OfAllDtypes(5).flat);
  expect_same_buffers(resumed, OfAllDtypes(5));
}

TEST_F(Checkpoint, OfAnEarlierVersionHasNoBuffersOfOtherDtypes) {
  const FlatParameters earlier({{"weight", at::ones({3})}, {"memory", at::empty({0, 4})}},
                               {{"buffers.Float", at::ones({2, 3})}});
  store_.save(earlier, progress_at(7), true);
  OfAllDtypes target(2);
  ASSERT_TRUE(load(target.flat).has_value());
  EXPECT_TRUE(at::equal(target.flat.values, earlier.values));
  EXPECT_EQ(target.buffers.back().tensor.item<int64_t>(), 2);
  const MatchedWeights found = load_matching_weights(file(7, "model"), target.flat);
  EXPECT_EQ(found.fresh.size(), target.flat.saved().size() - target.flat.num_flat());
}

TEST_F(Checkpoint, WithABufferOfAnotherDtypeIsRefused) {
  store_.save(FlatParameters({{"weight", at::ones({3})}}, {{"order", at::arange(4, at::kInt)}}),
              progress_at(7), true);
  FlatParameters target({{"weight", at::zeros({3})}}, {{"order", at::arange(4, at::kLong)}});
  EXPECT_FALSE(load(target).has_value());
  EXPECT_THAT(problems_.at(0), HasSubstr("tensor 'order' has another shape or type"));
  EXPECT_EQ(target.values.count_nonzero().item<int64_t>(), 0) << "nothing was loaded";
  EXPECT_THAT(error_of([&] { load_matching_weights(file(7, "model"), target); }),
              AllOf(HasSubstr("'order' is I32"), HasSubstr("expected I64 weights")));
}

}  // namespace
}  // namespace lra::training
