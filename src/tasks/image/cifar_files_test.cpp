#include "tasks/image/cifar_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_archive.h"
#include "io/atomic_file.h"
#include "tasks/image/test_cifar.h"

namespace lra::tasks {
namespace {

using ::testing::HasSubstr;

Cifar read(const std::string& source) {
  QuietProgress progress;
  return read_cifar(source, progress);
}

std::string read_error(const std::string& source) {
  return error_of([&] { read(source); });
}

// Against exact arithmetic: float32 differs for 168 of the 16,777,216 colors, by one, as NumPy
// finds with the same formula and order.
TEST(CifarFiles, GrayIsTheFloatFormulaForEveryColour) {
  int64_t num_different = 0, num_wrong = 0;
  for (int red = 0; red < 256; ++red) {
    for (int green = 0; green < 256; ++green) {
      for (int blue = 0; blue < 256; ++blue) {
        const int exact = (2989 * red + 5870 * green + 1140 * blue) * 511LL / 5100000;
        const int gray = gray_value(static_cast<uint8_t>(red), static_cast<uint8_t>(green),
                                    static_cast<uint8_t>(blue));
        num_different += gray != exact;
        num_wrong += std::abs(gray - exact) > 1;
      }
    }
  }
  EXPECT_EQ(num_different, 168);
  EXPECT_EQ(num_wrong, 0);
  EXPECT_EQ(gray_value(0, 0, 0), 0);
  EXPECT_EQ(gray_value(255, 255, 255), 255);
}

TEST(CifarFiles, EveryLayoutGivesTheSameImages) {
  const TestFolder root;
  write_small_cifar(root.path("."));
  const Cifar binary = read(root.path("."));
  ASSERT_EQ(binary.train.size(), 100);
  ASSERT_EQ(binary.test.size(), 20);
  const auto records = small_cifar()[1];
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(binary.train.labels[20 + i], records[i].label);
    for (size_t p = 0; p < 1024; p += 37) {
      const auto colour = [&](size_t plane) {
        return static_cast<uint8_t>(records[i].colours[1024 * plane + p]);
      };
      EXPECT_EQ(binary.train.pixels[1024 * (20 + i) + p],
                gray_value(colour(0), colour(1), colour(2)));
    }
  }
  const std::string python = root.path("python/cifar-10-batches-py/");
  for (size_t i = 0; i < 6; ++i) {
    write_text(python + kCifarNames[i], cifar_pickle(small_cifar()[i]));
  }
  const auto item = [&](const std::string& name) {
    return ArchiveItem{.name = "cifar-10-batches-bin/" + name + ".bin",
                       .content = cifar_binary(small_cifar()[static_cast<size_t>(
                           std::ranges::find(kCifarNames, name) - kCifarNames.begin())])};
  };
  std::vector<ArchiveItem> items;
  for (const std::string& name : kCifarNames) items.insert(items.begin(), item(name));
  items.push_back({.name = "cifar-10-batches-bin/readme.html", .content = "read me"});
  items.push_back({.name = "cifar-10-batches-bin/._data_batch_1.bin", .content = "clutter"});
  write_test_archive(root.path("a.tar.gz"), items);
  for (const char* source : {"python", "python/cifar-10-batches-py", "a.tar.gz"}) {
    const Cifar other = read(root.path(source));
    EXPECT_EQ(other.train.labels, binary.train.labels) << source;
    EXPECT_EQ(other.train.pixels, binary.train.pixels) << source;
    EXPECT_EQ(other.test.pixels, binary.test.pixels) << source;
    EXPECT_EQ(other.source_hash, binary.source_hash) << source;
  }
  write_test_archive(root.path("b.tar.gz"), {item("test_batch"), item("test_batch")});
  EXPECT_THAT(read_error(root.path("b.tar.gz")), HasSubstr("occurs twice"));
  write_test_archive(root.path("c.tar.gz"), {item("test_batch"), item("data_batch_1")});
  EXPECT_THAT(read_error(root.path("c.tar.gz")), HasSubstr("holds no data_batch_2"));
  write_test_archive(root.path("d.tar.gz"), {{.name = "aclImdb/README", .content = "read me"}});
  EXPECT_THAT(read_error(root.path("d.tar.gz")),
              HasSubstr("holds no CIFAR-10 files; it holds 'aclImdb/README'"));
}

TEST(CifarFiles, DamagedFilesAreRefusedByNameAndOffset) {
  const TestFolder root;
  const std::string folder = root.path("cifar-10-batches-bin/");
  EXPECT_THAT(read_error(root.path("none")), HasSubstr("no such file"));
  write_text(folder + "readme.html", "");
  EXPECT_THAT(read_error(folder),
              HasSubstr("holds no CIFAR-10 files; it holds 'readme.html'; expected"));
  write_small_cifar(root.path("."));
  std::string bytes = cifar_binary(small_cifar_records(3, 4));
  write_text(folder + "test_batch.bin", bytes + "x");
  EXPECT_THAT(read_error(folder), HasSubstr("test_batch.bin: has 9220 bytes; expected whole"));
  bytes[3073] = 10;
  write_text(folder + "test_batch.bin", bytes);
  EXPECT_THAT(read_error(folder), HasSubstr("test_batch.bin:byte 3074: label is 10"));
}

// A copy that was cut short would otherwise pass for a smaller set.
TEST(CifarFiles, IncompleteSetsAreRefusedByName) {
  for (const std::string& name : kCifarNames) {
    const TestFolder root;
    write_small_cifar(root.path("."));
    const std::string path = root.path("cifar-10-batches-bin/" + name + ".bin");
    const std::string bytes = read_file(path, 1 << 20);
    write_text(path, bytes.substr(0, 3 * 3073));
    const std::string other = name == "data_batch_1" ? "test_batch has 20 images; expected 3"
                                                     : name + " has 3 images; expected 20";
    EXPECT_THAT(read_error(root.path(".")), HasSubstr(other));
    std::filesystem::remove(path);
    const std::string missing = "not all: '" + name + ".bin' is missing";
    EXPECT_THAT(read_error(root.path(".")), HasSubstr(missing));
    EXPECT_THAT(error_of([&] { cifar_folder(root.path(".")); }), HasSubstr(missing));
  }
}

TEST(CifarFiles, OneFileUnderTwoNamesIsRefused) {
  const TestFolder root;
  auto files = small_cifar();
  files[4] = files[0];
  write_small_cifar(root.path("."), files);
  EXPECT_THAT(read_error(root.path(".")),
              HasSubstr("data_batch_5 holds the images of data_batch_1"));
}

}  // namespace
}  // namespace lra::tasks
