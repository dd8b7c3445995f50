#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/mapped_file.h"
#include "io/toml.h"
#include "tasks/all.h"
#include "tasks/image/test_cifar.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Task> image_task(const std::string& toml = "") {
  return kImageTask.make(parse_toml(toml, "test"));
}

Dataset import(const std::string& source, const std::string& out) {
  QuietProgress progress;
  image_task()->import({source}, out, progress).writer.publish();
  return Dataset::open(out);
}

std::vector<uint8_t> pixels_of(const Split& split, int64_t example) {
  const auto bytes = split.stored_bytes(example);
  return {bytes.begin(), bytes.end()};
}

TEST(Image, ATenthOfTheTrainingImagesIsForValidation) {
  const TestFolder root;
  write_small_cifar(root.path("."));
  const Dataset dataset = import(root.path("."), root.path("data"));
  const Split train = dataset.split("train"), val = dataset.split("val");
  EXPECT_EQ(train.size(), 90);
  EXPECT_EQ(val.size(), 10);
  EXPECT_EQ(dataset.split("test").size(), 20);
  // Both parts together are all images, each in its official order.
  QuietProgress progress;
  const Cifar cifar = read_cifar(root.path("."), progress);
  int64_t next_train = 0, next_val = 0;
  for (size_t i = 0; i < 100; ++i) {
    const auto first = cifar.train.pixels.begin() + static_cast<std::ptrdiff_t>(i * 1024);
    const std::vector<uint8_t> image(first, first + 1024);
    if (next_val < 10 && pixels_of(val, next_val) == image) {
      EXPECT_EQ(val.label(next_val++), cifar.train.labels[i]);
    } else {
      ASSERT_LT(next_train, 90);
      ASSERT_EQ(pixels_of(train, next_train), image) << i;
      EXPECT_EQ(train.label(next_train++), cifar.train.labels[i]);
    }
  }
  EXPECT_EQ(next_val, 10);
  const auto& settings = dataset.manifest().settings;
  EXPECT_EQ(settings.at("split_seed"), "0");
  EXPECT_EQ(settings.at("validation_numbers_xxh3").size(), 32U);
}

TEST(Image, PixelsAreIdsWithoutPadding) {
  const auto task = image_task();
  EXPECT_FALSE(task->shape().has_padding);
  EXPECT_EQ(task->shape().vocabulary, 256);
  const TestFolder root;
  std::string black(3072, '\0'), white(3072, '\xFF');
  for (size_t plane = 0; plane < 3; ++plane) black[1024 * plane + 33] = '\xFF';
  std::array<std::vector<CifarRecord>, 6> files;
  for (CifarRecord cat{.label = 3, .colours = black}; auto& file : files) {
    file = {cat};
    ++cat.colours[0];  // no file is that of another
  }
  files[5] = {{.label = 9, .colours = white}};
  write_small_cifar(root.path("."), files);
  const Dataset dataset = import(root.path("."), root.path("data"));
  std::vector<int32_t> ids(1024);
  EXPECT_EQ(dataset.split("train").read_tokens(0, 0, ids), 1024);
  for (int32_t p = 0; p < 1024; ++p) EXPECT_EQ(ids[static_cast<size_t>(p)], p == 33 ? 255 : 0);
  const std::string picture = task->render(dataset.split("train"), 0);
  EXPECT_THAT(picture, HasSubstr("3 (cat)"));
  const std::string row(64, ' ');
  EXPECT_THAT(picture, HasSubstr(row + "\n  @@" + row.substr(4) + "\n" + row));
}

TEST(Image, CheckNamesWrongCountsAndExportRefuses) {
  const TestFolder root;
  write_small_cifar(root.path("."));
  const Dataset dataset = import(root.path("."), root.path("data"));
  EXPECT_THAT(image_task()->check(dataset)[0].detail, HasSubstr("not the published size"));
  EXPECT_FALSE(image_task("num_train = 91")->check(dataset)[0].ok);
  EXPECT_TRUE(image_task("num_train = 90")->check(dataset)[0].ok);
  EXPECT_THAT(error_of([&] { image_task()->export_official(dataset, root.path("out")); }),
              HasSubstr("gray"));
  QuietProgress progress;
  write_small_cifar(root.path("."), {});
  EXPECT_THAT(error_of([&] { image_task()->import({root.path(".")}, root.path("x"), progress); }),
              HasSubstr("holds no"));
  EXPECT_THAT(error_of([&] { image_task()->import({}, root.path("x"), progress); }),
              HasSubstr("0 sources"));
}

TEST(Image, NearestMeanSeesBrightness) {
  const TestFolder root;
  write_small_cifar(root.path("."));
  const auto baselines = image_task()->baselines(import(root.path("."), root.path("data")));
  ASSERT_EQ(baselines.size(), 3U);
  EXPECT_EQ(baselines[0].accuracy, 0.1);
  EXPECT_GT(baselines[1].accuracy, 0.9);
}

// The first images of the official files, bit for bit.
TEST(Image, RealImagesAreGrayByTheFormula) {
  const char* data = std::getenv("LRA_TEST_DATA");
  if (!data) GTEST_SKIP() << "LRA_TEST_DATA is not set";
  const TestFolder root;
  write_small_cifar(root.path("."), real_cifar(std::string(data) + "/cifar-10-lossless"));
  const Dataset dataset = import(root.path("."), root.path("data"));
  EXPECT_EQ(dataset.split("train").size(), 3600);
  EXPECT_EQ(dataset.split("val").size(), 400);
  const Split test = dataset.split("test");
  ASSERT_EQ(test.size(), 800);
  const MappedFile file(root.path("cifar-10-batches-bin/test_batch.bin"));
  for (int64_t i = 0; i < test.size(); ++i) {
    const auto record = file.bytes().subspan(static_cast<size_t>(i) * 3073, 3073);
    ASSERT_EQ(test.label(i), static_cast<int32_t>(record[0]));
    for (size_t p = 0; p < 1024; ++p) {
      const auto share = [&](size_t plane) {
        return static_cast<float>(record[1 + 1024 * plane + p]) / 255.0f;
      };
      // Kept apart in memory, so that no product is fused with a sum.
      const volatile float red = 0.2989f * share(0), green = 0.5870f * share(1),
                           blue = 0.1140f * share(2);
      const float sum = red + green + blue;
      ASSERT_EQ(test.stored_bytes(i)[p], static_cast<uint8_t>(sum * 255.5f)) << i << " " << p;
    }
  }
  EXPECT_EQ(dataset.hash(), "5a47a1bc621f09cb6b56b67d9657620f");
}

// All 60,000 images in the official order and format (their colors went through JPEG).
TEST(Image, TheWholeSetHasTheOfficialCounts) {
  const char* data = std::getenv("LRA_TEST_DATA");
  if (!data) GTEST_SKIP() << "LRA_TEST_DATA is not set";
  const TestFolder root;
  const auto sources = image_task()->find_sources(data);
  ASSERT_EQ(sources.size(), 1U);
  const Dataset dataset = import(sources[0], root.path("data"));
  for (const checks::Fact& fact : image_task()->check(dataset)) {
    EXPECT_TRUE(fact.ok) << fact.name << ": " << fact.value << " (" << fact.detail << ")";
  }
  const auto baselines = image_task()->baselines(dataset);
  EXPECT_NEAR(baselines[0].accuracy, 0.1, 1e-9);
  EXPECT_GT(baselines[1].accuracy, 0.18);
  EXPECT_LT(baselines[1].accuracy, 0.32);
}

}  // namespace
}  // namespace lra::tasks
