#include "tasks/image/cifar_png.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "base/parallel.h"
#include "data/files.h"
#include "data/png_image.h"
#include "data/stopping.h"
#include "io/atomic_file.h"
#include "io/progress.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxImageBytes = 1 << 20;

struct ImageFile {
  std::string path;
  int label = 0;
  int64_t number = -1;  // that the name begins with; -1: none
};

// -1 for a name that is not that of a class.
int label_of(std::string_view name) {
  const auto* const found = std::find(kCifarClassNames.begin(), kCifarClassNames.end(), name);
  return found == kCifarClassNames.end() ? -1 : static_cast<int>(found - kCifarClassNames.begin());
}

// "17_frog" -> 17 and "_frog"; -1 and the name itself without a number of at most 9 digits.
std::pair<int64_t, std::string_view> split_number(std::string_view name) {
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (digits == 0 || digits > 9) return {-1, name};
  int64_t number = 0;
  std::from_chars(name.data(), name.data() + digits, number);
  return {number, name.substr(digits)};
}

Error bad_name(const fs::path& path) {
  return Error({.where = path.string(),
                .what = "does not have the name of a CIFAR-10 image",
                .expected = "<class>/<name>.png or <number>_<class>.png, a class being one of "
                            "airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck",
                .advice = "remove or rename it"});
}

// `label` is that of the folder; -1: names tell it.
void add_image(const fs::path& path, int label, std::vector<ImageFile>& images) {
  std::error_code ignored;
  if (!fs::is_regular_file(fs::symlink_status(path, ignored)) || !has_ending(path, ".png")) {
    throw bad_name(path);
  }
  const std::string stem = path.stem().string();
  const auto [number, rest] = split_number(stem);
  if (label < 0 && number >= 0 && rest.starts_with("_")) label = label_of(rest.substr(1));
  if (label < 0) throw bad_name(path);
  images.push_back({path.string(), label, number});
}

std::vector<ImageFile> images_of(const fs::path& split) {
  std::vector<ImageFile> images;
  for (const std::string& name : data_names_in(split.string())) {
    throw_if_stopped();
    const fs::path path = split / name;
    const int label = label_of(name);
    std::error_code ignored;
    if (label < 0) {
      add_image(path, -1, images);
    } else if (!fs::is_directory(fs::symlink_status(path, ignored))) {
      throw bad_name(path);
    } else {
      for (const std::string& below : data_names_in(path.string())) {
        add_image(path / below, label, images);
      }
    }
  }
  if (images.empty()) {
    throw Error({.where = split.string(),
                 .what = "holds no images",
                 .expected = "<class>/<name>.png or <number>_<class>.png"});
  }
  std::set<int64_t> numbers;
  for (const ImageFile& image : images) numbers.insert(image.number);
  const bool by_number = numbers.size() == images.size() && *numbers.begin() >= 0;
  std::sort(images.begin(), images.end(), [&](const ImageFile& a, const ImageFile& b) {
    if (by_number) return a.number < b.number;
    return std::tie(a.label, a.path) < std::tie(b.label, b.path);
  });
  return images;
}

// Reads an image as a record of the binary layout.
void read_record(const ImageFile& file, std::span<std::byte> record) {
  const std::string content = read_file(file.path, kMaxImageBytes);
  const ColourImage image =
      decode_png_colours(std::as_bytes(std::span(content)), file.path, kCifarSide);
  if (image.width != kCifarSide || image.height != kCifarSide) {
    throw Error({.where = file.path,
                 .what = "is " + std::to_string(image.width) + " x " +
                         std::to_string(image.height) + " pixels",
                 .expected = "32 x 32"});
  }
  record[0] = static_cast<std::byte>(file.label);
  for (size_t n = 0; n < kCifarColourBytes; ++n) {
    record[1 + n % 3 * kCifarPixels + n / 3] = static_cast<std::byte>(image.pixels[n]);
  }
}

CifarFile read_images(std::span<const ImageFile> files, const std::string& name,
                      Progress& progress) {
  std::vector<std::byte> records(files.size() * kCifarRecordBytes);
  parallel_ranges(static_cast<int64_t>(files.size()), 64, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      throw_if_stopped();
      read_record(files[i], std::span(records).subspan(i * kCifarRecordBytes, kCifarRecordBytes));
      progress.update();
    }
  });
  return read_cifar_file(records, name, false);
}

}  // namespace

bool is_cifar_png_folder(const std::string& folder) {
  const fs::path base(folder);
  for (const char* official :
       {"data_batch_1", "data_batch_1.bin", "cifar-10-batches-bin", "cifar-10-batches-py"}) {
    if (is_there(base / official)) return false;
  }
  return is_folder(base / "train") && is_folder(base / "test");
}

Cifar read_cifar_png(const std::string& folder, Progress& progress, size_t images_of_a_file) {
  Cifar cifar;
  Hasher hasher;  // of the test images first, as in the official layouts
  for (const char* split : {"test", "train"}) {
    GrayImages& all = split == std::string_view("test") ? cifar.test : cifar.train;
    const fs::path path = fs::path(folder) / split;
    const std::vector<ImageFile> files = images_of(path);
    for (size_t first = 0; first < files.size(); first += images_of_a_file) {
      const size_t count = std::min(images_of_a_file, files.size() - first);
      const CifarFile part =
          read_images(std::span(files).subspan(first, count), path.string(), progress);
      hasher.append(to_hex(part.hash));
      all.append(part.images);
    }
  }
  cifar.source_hash = to_hex(hasher.digest());
  return cifar;
}

}  // namespace lra::tasks
