// The Pathfinder tasks as a whole: layouts, splits, hostile files, what check finds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_fixtures.h"
#include "io/atomic_file.h"
#include "io/toml.h"
#include "tasks/all.h"
#include "tasks/pathfinder/generator.h"
#include "tasks/pathfinder/markers.h"
#include "tasks/pathfinder/split.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kLevel = "pathfinder32/curv_contour_length_14";

class Pathfinder : public ::testing::Test {
 protected:
  // An official folder with 30 images below the root.
  Pathfinder() : task_(kPathfinderTask.make({})) {
    make("made", 24, 3, 3);
    task_->export_official(Dataset::open(root_.path("made")), root_.path("archive"));
  }

  void make(const std::string& name, int64_t train, int64_t val, int64_t test) {
    task_->make({.out = root_.path(name), .num_train = train, .num_val = val, .num_test = test},
                progress_);
  }
  std::string file(const std::string& name) const {
    return root_.path("archive/" + kLevel + "/" + name);
  }
  std::string metadata() const { return read_file(file("metadata/0.npy"), 100000); }
  // Error of importing now; nothing is left behind when it fails.
  std::string import_error(const Task& task) {
    fs::remove_all(root_.path("out"));
    const std::string error = error_of([&] {
      task.import({root_.path("archive/pathfinder32")}, root_.path("out"), progress_)
          .writer.publish();
    });
    EXPECT_EQ(fs::exists(root_.path("out")), error.empty());
    EXPECT_FALSE(fs::exists(root_.path("out.lra.partial")));
    return error;
  }
  std::string import_error() { return import_error(*task_); }
  checks::Fact fact(const std::string& name, const std::string& folder = "out") const {
    for (const checks::Fact& fact : task_->check(Dataset::open(root_.path(folder)))) {
      if (fact.name == name) return fact;
    }
    ADD_FAILURE() << "no fact '" << name << "'";
    return {};
  }

  TestFolder root_;
  QuietProgress progress_;
  std::unique_ptr<Task> task_;
};

TEST_F(Pathfinder, AnyFolderOfTheArchiveCanBeNamed) {
  const std::string hash = Dataset::open(root_.path("made")).hash();
  int64_t number = 0;
  const auto hash_from = [&](const std::string& source) {
    const std::string out = root_.path("from" + std::to_string(number++));
    task_->import({root_.path(source)}, out, progress_).writer.publish();
    return Dataset::open(out).hash();
  };
  EXPECT_EQ(hash_from("archive/" + kLevel), hash);
  EXPECT_EQ(hash_from("archive/pathfinder32"), hash);
  EXPECT_EQ(hash_from("archive"), hash);
  fs::create_directories(root_.path("whole/lra_release/lra_release"));
  fs::rename(root_.path("archive/pathfinder32"),
             root_.path("whole/lra_release/lra_release/pathfinder32"));
  EXPECT_EQ(hash_from("whole"), hash);
}

TEST_F(Pathfinder, OfTwoCopiesInTheArchiveTheInnerOneIsTaken) {
  const auto path_x = kPathXTask.make({});
  const std::string level = "pathfinder128/curv_contour_length_14";
  fs::create_directories(root_.path("x/lra_release/" + level));
  EXPECT_THAT(path_x->find_sources(root_.path("x"))[0], HasSubstr("x/lra_release/pathfinder128"));
  fs::create_directories(root_.path("x/lra_release/lra_release/" + level));
  EXPECT_THAT(path_x->find_sources(root_.path("x"))[0],
              HasSubstr("x/lra_release/lra_release/pathfinder128"));
}

TEST_F(Pathfinder, EveryImageHasTheContourLengthOfItsSet) {
  const auto found = task_->example_properties(Dataset::open(root_.path("made")), "test");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].values, ::testing::ElementsAre("14", "14", "14"));
}

TEST_F(Pathfinder, WithoutASplitsFileTheFrozenSplitIsDrawn) {
  fs::remove(file("splits.txt"));
  ASSERT_EQ(import_error(), "");
  const Dataset dataset = Dataset::open(root_.path("out"));
  EXPECT_EQ(dataset.split("train").size(), 24);
  EXPECT_EQ(dataset.split("test").size(), 3);
  const Membership members = draw_membership(tenths(200000), 0);
  EXPECT_EQ(members[0].size(), 160000U);
  EXPECT_EQ(members[1].size(), 20000U);
  EXPECT_EQ(hash_of(members), "999e55124970d417bb452a94b5b9e94d")
      << "everybody's splits change with this";
}

TEST_F(Pathfinder, ABadSplitsFileIsNamedByLine) {
  const std::string text = read_file(file("splits.txt"), 100000);
  const size_t line_end = text.find('\n') + 1;
  write_text(file("splits.txt"), text.substr(line_end));
  EXPECT_THAT(import_error(), HasSubstr("leaves out 1 images"));
  write_text(file("splits.txt"), text + text.substr(0, line_end));
  EXPECT_THAT(import_error(), HasSubstr("splits.txt:31"));
  write_text(file("splits.txt"), "imgs/0/sample_0.png dev\n" + text);
  EXPECT_THAT(import_error(), HasSubstr("splits.txt:1"));
}

TEST_F(Pathfinder, ASplitsFileIsNotTakenForTheSplitOfAnotherSeed) {
  const auto with_seed = [](int seed) {
    return kPathfinderTask.make(parse_toml("split_seed = " + std::to_string(seed), "test"));
  };
  const auto settings = [&] { return Dataset::open(root_.path("out")).manifest().settings; };
  ASSERT_EQ(import_error(), "");
  EXPECT_EQ(settings().at("split_seed"), "0");
  EXPECT_FALSE(settings().contains("num_train"));  // the usual tenths
  EXPECT_THAT(import_error(*with_seed(7)),
              HasSubstr("holds another split than task.split_seed gives"));

  fs::remove_all(root_.path("archive"));
  with_seed(7)->make({.out = root_.path("seven"), .num_train = 20, .num_val = 6, .num_test = 4},
                     progress_);
  with_seed(7)->export_official(Dataset::open(root_.path("seven")), root_.path("archive"));
  ASSERT_EQ(import_error(*with_seed(7)), "");
  EXPECT_EQ(settings().at("split_seed"), "7");
  ASSERT_EQ(import_error(), "");
  EXPECT_FALSE(settings().contains("split_seed"));
  EXPECT_TRUE(fact("examples of val").ok);
  const Dataset imported = Dataset::open(root_.path("out"));
  EXPECT_EQ(task_->split(imported, "val").size(), 6);
  EXPECT_THAT(error_of([&] { with_seed(5)->refuse_other_settings(imported); }),
              HasSubstr("has a split of its own; expected seed 5"));
}

TEST_F(Pathfinder, ASplitsFileThatLeavesASplitEmptyIsNoSource) {
  std::string text = read_file(file("splits.txt"), 100000);
  for (size_t at = text.find(" test\n"); at != text.npos; at = text.find(" test\n")) {
    text.replace(at, 6, " train\n");
  }
  write_text(file("splits.txt"), text);
  EXPECT_THAT(import_error(), HasSubstr("splits.txt: assigns no image to test"));
}

TEST_F(Pathfinder, AFolderOfAnotherDifficultyIsRefused) {
  const auto easy = kPathfinderTask.make(parse_toml("difficulty = 'easy'", "test"));
  EXPECT_THAT(error_of([&] { easy->import({file("")}, root_.path("easy"), progress_); }),
              HasSubstr("has contours of 14 dashes; expected 6"));
  ASSERT_EQ(import_error(), "");
  const Dataset hard = Dataset::open(root_.path("out"));
  EXPECT_THAT(error_of([&] { easy->export_official(hard, root_.path("exported")); }),
              HasSubstr("difficulty 'hard'"));
}

TEST_F(Pathfinder, ASourceWithoutAUsableImageIsNoData) {
  for (const auto& entry : fs::directory_iterator(file("imgs/0"))) {
    write_text(entry.path().string(), "");
  }
  EXPECT_THAT(import_error(), HasSubstr("no usable example for the split"));
  EXPECT_FALSE(fs::exists(root_.path("out")));
}

TEST_F(Pathfinder, BrokenImagesAreLeftOutAndReported) {
  write_text(file("imgs/0/sample_3.png"), "");
  const std::string png = read_file(file("imgs/0/sample_4.png"), 100000);
  write_text(file("imgs/0/sample_4.png"), png.substr(0, png.size() / 2));
  ASSERT_EQ(import_error(), "");
  const Dataset dataset = Dataset::open(root_.path("out"));
  EXPECT_EQ(
      dataset.split("train").size() + dataset.split("val").size() + dataset.split("test").size(),
      28);
  const checks::Fact skipped = fact("images skipped");
  EXPECT_EQ(skipped.value, "2");
  EXPECT_FALSE(skipped.ok);
  EXPECT_THAT(skipped.detail, HasSubstr("sample_4"));
  const auto sized = kPathfinderTask.make(parse_toml("num_images = 30", "test"));
  for (const checks::Fact& row : sized->check(dataset)) {
    EXPECT_TRUE(row.ok || row.name == "images skipped") << row.name << row.detail;
  }
}

TEST_F(Pathfinder, TheEmptyImageOfTheArchiveIsNoDamage) {
  write_text(file("imgs/0/sample_3.png"), "");
  ASSERT_EQ(import_error(), "");
  const checks::Fact skipped = fact("images skipped");
  EXPECT_EQ(skipped.value, "1");
  EXPECT_TRUE(skipped.ok);
}

TEST_F(Pathfinder, MissingImagesAreAnErrorThatNamesTheFile) {
  fs::remove(file("imgs/0/sample_5.png"));
  EXPECT_THAT(import_error(), HasSubstr("imgs/0/sample_5.png"));
}

TEST_F(Pathfinder, HostileMetadataIsRefusedAndNothingOutsideIsRead) {
  const std::string good = metadata();
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    write_text(file("metadata/0.npy"), text);
    return import_error();
  };
  EXPECT_THAT(error_with("imgs/0 sample_2.png", "imgs/0 ../../x.png"),
              HasSubstr("metadata/0.npy:3: names the image"));
  EXPECT_THAT(error_with("imgs/0 sample_0.png", "imgs/../.. sample_0.png"),
              HasSubstr("metadata/0.npy:1: names the image"));
  EXPECT_THAT(error_with("imgs/0 sample_2.png", "/etc passwd"), HasSubstr("names the image"));
  EXPECT_THAT(error_with("sample_1.png 1 ", "sample_1.png 1 yes "), HasSubstr("12 fields"));
  EXPECT_THAT(error_with("sample_1.png", "sample_0.png"), HasSubstr("imgs/0/sample_0.png again"));
  write_text(file("metadata/0.npy"), "\x93NUMPY\x01");
  EXPECT_THAT(import_error(), HasSubstr("0.npy:byte 7"));
  write_text(file("metadata/0.npy"), "");
  EXPECT_THAT(import_error(), HasSubstr("has no metadata; it holds"));
}

// A label that the importer cannot see to be wrong changes the data and its hash; in generated data
// it is found out.
TEST_F(Pathfinder, AWrongLabelIsFoundInGeneratedData) {
  EXPECT_TRUE(fact("images drawn again", "made").ok);
  const Dataset made = Dataset::open(root_.path("made"));
  const std::string lines = made.read_side_file("metadata.txt");
  for (const bool with_metadata : {false, true}) {
    const std::string out = with_metadata ? "both" : "one";
    DatasetWriter writer(root_.path(out), without_files(made.manifest()), 0);
    std::string changed = lines;
    for (const char* name : kSplitNames) {
      writer.begin_split(name);
      const Split split = made.split(name);
      for (int64_t i = 0; i < split.size(); ++i) {
        const bool is_wrong = i == 0 && name == std::string("train");
        writer.add(is_wrong ? 1 - split.label(i) : split.label(i), split.stored_bytes(i));
      }
    }
    if (with_metadata) {
      const std::string first = made.split("train").label(0) == 1 ? " 1 1.0" : " 0 1.0";
      changed[changed.find(first) + 1] = first[1] == '1' ? '0' : '1';
    }
    writer.add_side_file("metadata.txt", changed);
    writer.finish();
    if (with_metadata) {
      const checks::Fact again = fact("images drawn again", out);
      EXPECT_FALSE(again.ok);
      EXPECT_THAT(again.detail, HasSubstr("train example 0"));
    } else {
      EXPECT_THAT(error_of([&] { task_->check(Dataset::open(root_.path(out))); }),
                  HasSubstr("does not agree with the examples"));
    }
  }
}

TEST_F(Pathfinder, DataOfAnotherDifficultyIsRefused) {
  const auto easy = kPathfinderTask.make(parse_toml("difficulty = \"easy\"", "test"));
  const Dataset made = Dataset::open(root_.path("made"));
  EXPECT_THAT(error_of([&] { easy->refuse_other_settings(made); }), HasSubstr("difficulty 'hard'"));
  EXPECT_EQ(task_->split(made, "train").size(), 24);
  EXPECT_THAT(import_error(*easy), HasSubstr("holds no Pathfinder images"));
}

TEST_F(Pathfinder, ImportsOfFilesSayThatAFolderIsNeeded) {
  EXPECT_THAT(
      error_of([&] { task_->import({file("metadata/0.npy")}, root_.path("out"), progress_); }),
      HasSubstr("is a file; expected the folder that holds curv_contour_length_14; unpack it"));
}

TEST_F(Pathfinder, ADiskThatIsTooSmallIsRefusedBeforehand) {
  const auto large = kPathfinder256Task.make({});
  const int64_t most = 5000000;  // a terabyte
  EXPECT_THAT(
      error_of([&] {
        large->make(
            {.out = root_.path("large"), .num_train = most, .num_val = most, .num_test = most},
            progress_);
      }),
      HasSubstr("are free"));
  EXPECT_FALSE(fs::exists(root_.path("large")));
}

TEST(PathfinderMarkers, AreFoundWhereTheyWereDrawn) {
  for (const int size : {32, 64, 128, 256}) {
    const PathfinderGenerator generator({.size = size}, 4);
    int num_found = 0;
    constexpr int kImages = 40;
    for (int i = 0; i < kImages; ++i) {
      const PathfinderImage image = generator.draw(i);
      const auto found = find_markers(image.pixels, size);
      const auto is_near = [&](Point marker) {
        return std::any_of(found.begin(), found.end(), [&](Point p) {
          return std::max(std::abs(p.y - marker.y), std::abs(p.x - marker.x)) <= 1;
        });
      };
      num_found += is_near(image.markers[0]) && is_near(image.markers[1]);
    }
    EXPECT_GE(num_found, kImages - 3) << size;
  }
}

// Enough images to tell; with labels that belong to other images the check fails.
TEST_F(Pathfinder, LabelsThatHaveNothingToDoWithTheImagesAreFoundOut) {
  make("many", 12000, 1, 1);
  const Dataset many = Dataset::open(root_.path("many"));
  const Split train = many.split("train");
  EXPECT_TRUE(marker_distance_fact(train, 32).ok);
  DatasetWriter writer(root_.path("mixed"), without_files(many.manifest()), 0);
  writer.begin_split("train");
  for (int64_t i = 0; i < train.size(); ++i) {
    writer.add(train.label((i + 1) % train.size()), train.stored_bytes(i));
  }
  writer.finish();
  const checks::Fact mixed =
      marker_distance_fact(Dataset::open(root_.path("mixed")).split("train"), 32);
  EXPECT_FALSE(mixed.ok) << mixed.value;
  EXPECT_THAT(mixed.detail, HasSubstr("labels have nothing to do with the images"));
  EXPECT_THAT(mixed.detail, Not(HasSubstr("pathfinder128"))) << "another size";
  const checks::Baseline shortcut = marker_distance_baseline(train, train, 32);
  EXPECT_GT(shortcut.accuracy, 0.52);
  EXPECT_LT(shortcut.accuracy, 0.60);
}

}  // namespace
}  // namespace lra::tasks
