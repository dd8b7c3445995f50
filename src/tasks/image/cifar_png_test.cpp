#include "tasks/image/cifar_png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/png_image.h"
#include "io/mapped_file.h"
#include "tasks/image/test_cifar.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

Cifar read_png(const std::string& folder) {
  QuietProgress progress;
  return read_cifar_png(folder, progress);
}

std::string png_error(const std::string& folder) {
  return error_of([&] { read_png(folder); });
}

std::string png_of(std::string_view planes) {
  ColourImage image{.width = kCifarSide, .height = kCifarSide, .pixels = {}};
  for (size_t p = 0; p < kCifarPixels; ++p) {
    for (size_t plane = 0; plane < 3; ++plane) {
      image.pixels.push_back(static_cast<uint8_t>(planes[kCifarPixels * plane + p]));
    }
  }
  return encode_png(image);
}

std::string class_of(const CifarRecord& record) { return kCifarClassNames.at(record.label); }

// Names as "airplane/0_airplane.png" or, without folders, "0_airplane.png".
void write_images(const std::string& split, const std::vector<CifarRecord>& records,
                  bool class_folders) {
  for (size_t i = 0; i < records.size(); ++i) {
    const std::string name = class_of(records[i]);
    write_text(
        split + "/" + (class_folders ? name + "/" : "") + std::to_string(i) + "_" + name + ".png",
        png_of(records[i].colours));
  }
}

void expect_same(const Cifar& got, const Cifar& want) {
  EXPECT_EQ(got.train.labels, want.train.labels);
  EXPECT_EQ(got.train.pixels, want.train.pixels);
  EXPECT_EQ(got.test.labels, want.test.labels);
  EXPECT_EQ(got.test.pixels, want.test.pixels);
  EXPECT_EQ(got.source_hash, want.source_hash);
}

// The images of the six official files as pictures: those of training in one folder, as all.
void write_as_images(const std::string& folder,
                     const std::array<std::vector<CifarRecord>, 6>& files, bool class_folders) {
  std::vector<CifarRecord> train;
  for (size_t i = 0; i < 5; ++i) train.insert(train.end(), files[i].begin(), files[i].end());
  write_images(folder + "/train", train, class_folders);
  write_images(folder + "/test", files[5], class_folders);
}

// Compares the hash of each file's images, too.
TEST(CifarPng, NumberedImagesAreThoseOfTheOfficialFiles) {
  const TestFolder root;
  write_small_cifar(root.path("."));
  QuietProgress progress;
  const Cifar binary = read_cifar(root.path("."), progress);
  for (const bool class_folders : {false, true}) {
    const std::string folder = root.path(class_folders ? "folders" : "flat");
    write_as_images(folder, small_cifar(), class_folders);
    write_text(folder + "/labels.txt", "airplane\n");
    for (const char* clutter : {"/train/.hidden", "/train/desktop.ini", "/test/Thumbs.db"}) {
      write_text(folder + clutter, "");
    }
    EXPECT_TRUE(is_cifar_png_folder(folder));
    expect_same(read_cifar_png(folder, progress, 20), binary);
  }
  std::filesystem::rename(root.path("flat/test/0_airplane.png"),
                          root.path("flat/test/0_airplane.PNG"));
  expect_same(read_cifar_png(root.path("flat"), progress, 20), binary);
  EXPECT_FALSE(is_cifar_png_folder(root.path("cifar-10-batches-bin")));
}

TEST(CifarPng, OthersAreInTheOrderOfClassAndName) {
  const TestFolder root;
  const auto records = small_cifar_records(20, 3);
  for (const char* split : {"/train/", "/test/"}) {
    for (size_t i = 0; i < records.size(); ++i) {
      // Numbers of a class: each twice or more in the split.
      write_text(
          root.path("") + split + class_of(records[i]) + "/" + std::to_string(i / 10) + ".png",
          png_of(records[i].colours));
    }
  }
  const Cifar cifar = read_png(root.path(""));
  ASSERT_EQ(cifar.train.size(), 20);
  for (size_t i = 0; i < 20; ++i) {
    const CifarRecord& record = records[i / 2 + i % 2 * 10];
    EXPECT_EQ(cifar.train.labels[i], record.label);
    EXPECT_EQ(cifar.train.pixels[kCifarPixels * i],
              gray_value(static_cast<uint8_t>(record.colours[0]),
                         static_cast<uint8_t>(record.colours[kCifarPixels]),
                         static_cast<uint8_t>(record.colours[2 * kCifarPixels])));
  }
}

TEST(CifarPng, GrayStaysWhatItIs) {
  const TestFolder root;
  GrayImage ramp{.width = kCifarSide, .height = kCifarSide, .pixels = {}};
  for (size_t p = 0; p < kCifarPixels; ++p) ramp.pixels.push_back(static_cast<uint8_t>(p));
  write_text(root.path("train/0_cat.png"), encode_png(ramp));
  write_text(root.path("test/0_dog.png"), encode_png(ramp));
  const Cifar cifar = read_png(root.path(""));
  EXPECT_EQ(cifar.train.pixels, ramp.pixels);
  EXPECT_EQ(cifar.test.labels, (std::vector<uint8_t>{5}));
}

TEST(CifarPng, RefusesByName) {
  const auto error_with = [](const std::string& name, const std::string& content) {
    const TestFolder root;
    write_images(root.path("train"), small_cifar_records(3, 4), false);
    write_images(root.path("test"), small_cifar_records(3, 5), false);
    EXPECT_EQ(png_error(root.path("")), "");
    write_text(root.path(name), content);
    return png_error(root.path(""));
  };
  const std::string good = png_of(small_cifar_records(1, 6)[0].colours);
  for (const char* name :
       {"train/frog.png", "train/9_toad.png", "train/9-frog.png", "test/toad/9.png",
        "test/9_frog.jpg", "test/frog/deeper/9.png", "train/9999999999_frog.png"}) {
    EXPECT_THAT(error_with(name, good), HasSubstr("does not have the name of a CIFAR-10 image"))
        << name;
  }
  EXPECT_EQ(error_with("train/frog/9999999999.png", good), "");
  EXPECT_THAT(error_with("test/9_frog.png", good.substr(0, 100)),
              HasSubstr("test/9_frog.png: is not a usable PNG"));
  EXPECT_THAT(error_with("test/9_frog.png", ""), HasSubstr("test/9_frog.png: is not a usable PNG"));
  EXPECT_THAT(
      error_with("train/9_frog.png", encode_png(GrayImage{.width = 1, .height = 1, .pixels = {0}})),
      HasSubstr("train/9_frog.png: is 1 x 1 pixels; expected 32 x 32"));
  const TestFolder root;
  write_images(root.path("train"), small_cifar_records(3, 4), false);
  std::filesystem::create_directories(root.path("test/frog"));
  EXPECT_THAT(png_error(root.path("")), HasSubstr("test: holds no images"));
  std::filesystem::create_symlink(root.path("train/0_airplane.png"), root.path("test/frog/0.png"));
  EXPECT_THAT(png_error(root.path("")),
              HasSubstr("test/frog/0.png: does not have the name of a CIFAR-10 image"));
  std::filesystem::remove_all(root.path("test/frog"));
  std::filesystem::create_directory_symlink(root.path("train"), root.path("test/frog"));
  EXPECT_THAT(png_error(root.path("")),
              HasSubstr("test/frog: does not have the name of a CIFAR-10 image"));
}

// The first images of the official files, as pictures and back.
TEST(CifarPng, RealImagesKeepTheirHash) {
  const char* data = std::getenv("LRA_TEST_DATA");
  if (!data) GTEST_SKIP() << "LRA_TEST_DATA is not set";
  const auto files = real_cifar(std::string(data) + "/cifar-10-lossless");
  const TestFolder root;
  write_small_cifar(root.path("."), files);
  write_as_images(root.path("png"), files, true);
  QuietProgress progress;
  expect_same(read_cifar_png(root.path("png"), progress, 800),
              read_cifar(root.path("."), progress));
}

}  // namespace
}  // namespace lra::tasks
