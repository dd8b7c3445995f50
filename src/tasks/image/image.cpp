// Image classification on sequences of pixels (Tay et al., ICLR 2021, section 2.2.4): CIFAR-10 in
// gray, flattened row by row; the id is the pixel's value, 0 to 255, and no position is padding.
//
// The authors cut their validation set from the order in which another library stores the images,
// which cannot be rebuilt from the official files. Ours is a fixed tenth of the training images:
// the first tenth of a keyed permutation of the official order. Within train and val the images
// keep that order.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "checks/baseline.h"
#include "checks/facts.h"
#include "data/drawn_examples.h"
#include "data/files.h"
#include "data/stopping.h"
#include "io/progress.h"
#include "tasks/all.h"
#include "tasks/image/cifar_files.h"
#include "tasks/image/cifar_png.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSplitSeed = 0;
// Mean and deviation of the training pixels, as state-space models are trained.
constexpr ValueInput kNormalised{.zero = 122.6, .scale = 1 / 61.0};

struct ImageConfig {
  int64_t num_train = 45000;
  int64_t num_val = 5000;
  int64_t num_test = 10000;
  std::string input = "tokens";

  void fields(auto& f) {
    f("num_train", num_train, "images that lra data check expects for training", at_least(0));
    f("num_val", num_val, "images that lra data check expects for validation", at_least(0));
    f("num_test", num_test, "images that lra data check expects for the test", at_least(0));
    f("input", input, "tokens: an embedding per gray value; values: (gray - 122.6) / 61",
      one_of({"tokens", "values"}));
  }
};

// Hash of the 60,000 images in gray, from every layout that import() reads.
constexpr std::string_view kImageExamples = "e9896b0ff4739825cfcf2ca82b411602";

class ImageTask : public Task {
 public:
  explicit ImageTask(const ImageConfig& config) : config_(config) {}

  TaskShape shape() const override {
    return {.length = kCifarPixels,
            .vocabulary = 256,
            .num_classes = kCifarClasses,
            .has_padding = false,
            .values = config_.input == "values" ? std::optional(kNormalised) : std::nullopt};
  }
  ImportedData import(const std::vector<std::string>& sources, const std::string& out,
                      Progress& progress) const override;
  std::vector<std::string> find_sources(const std::string& root) const override;
  void export_official(const Dataset& dataset, const std::string& out) const override;
  checks::InputKind input() const override { return checks::InputKind::kPixels; }
  checks::ExpectedData expected(const Dataset& dataset) const override;
  std::string render(const Split& split, int64_t example) const override;
  std::vector<checks::Baseline> baselines(const Dataset& dataset) const override;

 private:
  ImageConfig config_;
};

// A list of the numbers of the validation images, one per line.
std::string hash_of(const std::vector<bool>& members) {
  Hasher hasher;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i]) hasher.append(std::to_string(i) + "\n");
  }
  return to_hex(hasher.digest());
}

// The images whose membership is `wanted`.
void write_images(const GrayImages& images, const std::vector<bool>& members, bool wanted,
                  DatasetWriter& writer) {
  for (size_t i = 0; i < images.labels.size(); ++i) {
    throw_if_stopped();
    if (members[i] != wanted) continue;
    writer.add(images.labels[i], std::span(images.pixels).subspan(i * kCifarPixels, kCifarPixels));
  }
}

ImportedData ImageTask::import(const std::vector<std::string>& sources, const std::string& out,
                               Progress& progress) const {
  if (sources.size() != 1) {
    throw Error({.where = "lra data import image",
                 .what = std::to_string(sources.size()) + " sources",
                 .expected = "one: a folder with the CIFAR-10 files or with PNG images below train "
                             "and test, or cifar-10-binary.tar.gz"});
  }
  const Cifar cifar = is_cifar_png_folder(sources[0]) ? read_cifar_png(sources[0], progress)
                                                      : read_cifar(sources[0], progress);
  if (cifar.test.size() == 0) {  // the one split that is not drawn
    throw Error({.where = sources[0], .what = "holds no test images", .advice = "is it complete?"});
  }
  const std::vector<bool> members = held_out_tenth(cifar.train.size(), kSplitSeed);
  Manifest manifest = new_manifest(kImageTask, "imported");
  manifest.source_hash = cifar.source_hash;
  manifest.settings = {{"gray", "0.2989 R + 0.5870 G + 0.1140 B, times 255.5 / 255, cut"},
                       {"split_seed", std::to_string(kSplitSeed)},
                       {"validation_numbers_xxh3", hash_of(members)}};
  DatasetWriter writer(out, std::move(manifest),
                       (cifar.train.size() + cifar.test.size()) * (kCifarPixels + 16));
  writer.begin_split("train");
  write_images(cifar.train, members, false, writer);
  writer.begin_split("val");
  write_images(cifar.train, members, true, writer);
  writer.begin_split("test");
  write_images(cifar.test, std::vector<bool>(cifar.test.labels.size()), false, writer);
  return completed(std::move(writer));
}

std::vector<std::string> ImageTask::find_sources(const std::string& root) const {
  if (const std::string folder = cifar_folder(root); !folder.empty()) return {folder};
  const fs::path base(root);
  for (const char* name : {"cifar-10-binary.tar.gz", "cifar-10-python.tar.gz"}) {
    if (is_file(base / name)) return {(base / name).string()};
  }
  for (const std::string& folder : {(base / "cifar10").string(), root}) {
    if (is_cifar_png_folder(folder)) return {folder};
  }
  return {};
}

void ImageTask::export_official(const Dataset& dataset, const std::string&) const {
  throw Error({.where = dataset.folder(),
               .what = "holds gray images; the official layout needs color",
               .advice = "copy the files it was imported from"});
}

checks::ExpectedData ImageTask::expected(const Dataset&) const {
  return {.sizes = checks::sizes_of(config_),
          .published = checks::sizes_of(ImageConfig{}),
          .published_examples = kImageExamples,
          .shortest = kCifarPixels,
          .longest = kCifarPixels,
          .bin = kCifarPixels};
}

// Two columns a pixel, since a terminal's cells are about twice as high as wide. Ten shades without
// any escape sequence.
std::string ImageTask::render(const Split& split, int64_t example) const {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const int32_t label = split.label(example);
  std::string text = std::to_string(label) + " (" +
                     kCifarClassNames.at(static_cast<size_t>(label)) + "), 32 x 32 gray\n";
  int64_t column = 0;
  for (const uint8_t pixel : split.stored_bytes(example)) {
    text.append(2, kShades[pixel * kShades.size() / 256]);
    if (++column % kCifarSide == 0) text += '\n';
  }
  return text;
}

std::vector<checks::Baseline> ImageTask::baselines(const Dataset& dataset) const {
  const Split train = dataset.split("train"), test = dataset.split("test");
  const auto pixels = [](const Split& split, int64_t example, std::span<float> to) {
    std::ranges::copy(split.stored_bytes(example), to.begin());
  };
  return {checks::majority_baseline(train, test, kCifarClasses),
          checks::nearest_mean_baseline(train, test, kCifarClasses,
                                        {.size = kCifarPixels, .read = pixels}),
          checks::place_baseline(train, test, kCifarClasses)};
}

// Size and digests as printed by the data set's authors and by those who checked the archive.
constexpr RemoteData kImageRemote = {
    .file = "cifar-10-binary.tar.gz",
    .urls = {"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"},
    .bytes = 170052171,
    .md5 = "c32a1d4ab5d03f1284b67883e8d87530",
    .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
};

}  // namespace

constinit const TaskSpec kImageTask = task_spec<ImageTask, ImageConfig>({
    .name = "image",
    .title = "Image classification on pixels",
    .summary = "the class of a gray CIFAR-10 picture read pixel by pixel; 10 classes",
    .paper = "Tay et al. 2021; Krizhevsky 2009",
    .version = 1,
    .sources = "the folder cifar-10-batches-bin or cifar-10-batches-py, the one above it, or a tar "
               "archive of it; or a folder with train/<class>/*.png and test/<class>/*.png, or "
               "with train/<number>_<class>.png and test/<number>_<class>.png",
    .remote = &kImageRemote,
    .mask_fraction = 0.5,
});

}  // namespace lra::tasks
