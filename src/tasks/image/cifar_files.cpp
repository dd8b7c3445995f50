#include "tasks/image/cifar_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "data/files.h"
#include "data/python_reader.h"
#include "data/stopping.h"
#include "data/tar_archive.h"
#include "data/text_lines.h"
#include "io/atomic_file.h"
#include "io/byte_reader.h"
#include "io/mapped_file.h"
#include "io/progress.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxFileBytes = uint64_t{32} << 20;  // an official file has 31 MB
constexpr int kNumDataBatches = 5;
constexpr const char* kExpected =
    "data_batch_1.bin to data_batch_5.bin and test_batch.bin, or the same names without .bin";

// Addends of the gray value for a value of 0 to 255, per channel. Looked up rather than multiplied:
// a compiler may fuse a product with the sum that follows, which rounds differently.
struct GrayTables {
  std::array<float, 256> red{}, green{}, blue{};
  constexpr GrayTables() {
    for (size_t value = 0; value < 256; ++value) {
      const float share = static_cast<float>(value) / 255.0f;
      red[value] = 0.2989f * share;
      green[value] = 0.5870f * share;
      blue[value] = 0.1140f * share;
    }
  }
};
constexpr GrayTables kGray;

// One file: where its labels and colors are.
struct RawBatch {
  std::vector<uint8_t> labels;
  const std::byte* colours = nullptr;     // of the first image
  size_t stride = 0;                      // bytes from one image to the next
  std::vector<std::byte> unpickled = {};  // the colors, where the file holds them otherwise
};

// 0 for the test batch, 1 to 5 for the data batches.
std::string batch_name(int index, bool is_pickle) {
  const std::string name = index == 0 ? "test_batch" : "data_batch_" + std::to_string(index);
  return is_pickle ? name : name + ".bin";
}

RawBatch read_binary(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() % kCifarRecordBytes != 0) {
    throw Error({.where = name,
                 .what = "has " + std::to_string(bytes.size()) + " bytes",
                 .expected = "whole records of " + std::to_string(kCifarRecordBytes) + " bytes",
                 .advice = "fetch it again"});
  }
  RawBatch batch{.labels = {}, .colours = bytes.data() + 1, .stride = kCifarRecordBytes};
  ByteReader reader(bytes, name);
  while (!reader.at_end()) {
    const uint8_t label = reader.u8("label");
    if (label >= kCifarClasses) reader.fail("label is " + std::to_string(label), "0 to 9");
    batch.labels.push_back(label);
    reader.skip(kCifarColourBytes, "colours");
  }
  return batch;
}

// A pickle is read by Python, which checks labels and shapes.
RawBatch from_pickle(std::span<const std::byte> bytes, const std::string& name) {
  PickledBatch found = read_pickle_with_python(bytes, name);
  RawBatch batch{.labels = found.texts.value("labels", std::vector<uint8_t>()),
                 .stride = kCifarColourBytes,
                 .unpickled = std::move(found.data)};
  if (batch.unpickled.size() != batch.labels.size() * kCifarColourBytes || batch.labels.empty()) {
    throw Error({.where = name,
                 .what = "holds no images",
                 .expected = "data_batch_1 to 5 or test_batch of cifar-10-python.tar.gz"});
  }
  batch.colours = batch.unpickled.data();
  return batch;
}

void convert(const std::byte* colours, std::span<uint8_t> gray) {
  const auto* red = reinterpret_cast<const uint8_t*>(colours);
  const uint8_t *green = red + kCifarPixels, *blue = green + kCifarPixels;
  for (size_t i = 0; i < gray.size(); ++i) gray[i] = gray_value(red[i], green[i], blue[i]);
}

using Batches = std::map<int, CifarFile>;  // by index

// The six files below a folder, the test batch first; none where there are none of one layout.
std::vector<std::string> batch_files(const std::string& folder, bool is_pickle) {
  FileSet set{.title = "the CIFAR-10 files",
              .folders = {".", is_pickle ? "cifar-10-batches-py" : "cifar-10-batches-bin"},
              .files = {}};
  for (int index = 0; index <= kNumDataBatches; ++index) {
    set.files.push_back(batch_name(index, is_pickle));
  }
  return find_file_set(folder, set);
}

[[noreturn]] void refuse_contents(const std::string& source, const std::string& contents) {
  throw Error({.where = source,
               .what = "holds no CIFAR-10 files; it holds " + contents,
               .expected = kExpected});
}

Batches read_folder(const std::string& source, Progress& progress) {
  Batches batches;
  for (const bool is_pickle : {false, true}) {
    const std::vector<std::string> paths = batch_files(source, is_pickle);
    for (size_t index = 0; index < paths.size(); ++index) {
      const MappedFile file(paths[index]);
      const CifarFile& batch = batches[static_cast<int>(index)] =
          read_cifar_file(file.bytes(), paths[index], is_pickle);
      progress.update(batch.images.size());
    }
    if (!paths.empty()) return batches;
  }
  refuse_contents(source, quoted_list(data_names_in(source)));
}

Batches read_archive(const std::string& source, Progress& progress) {
  TarArchive archive(source, "cifar-10-binary.tar.gz or cifar-10-python.tar.gz");
  Batches batches;
  while (archive.next()) {
    if (!archive.is_file()) continue;
    const std::string base = fs::path(archive.name()).filename().string();
    for (int index = 0; index <= kNumDataBatches; ++index) {
      const bool is_pickle = base == batch_name(index, true);
      if (!is_pickle && base != batch_name(index, false)) continue;
      const std::string name = source + ":" + printable(archive.name());
      if (batches.contains(index)) {
        throw Error({.where = name, .what = "occurs twice", .expected = kExpected});
      }
      const std::string content = archive.content(kMaxFileBytes);
      const CifarFile& batch = batches[index] =
          read_cifar_file(std::as_bytes(std::span(content)), name, is_pickle);
      progress.update(batch.images.size());
    }
  }
  if (batches.empty()) refuse_contents(source, archive.contents());
  return batches;
}

// A file that was cut between two images, or left out, would give a set that looks whole.
void refuse_incomplete(const Batches& batches, const std::string& source) {
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw Error({.where = source, .what = what, .expected = expected, .advice = "is it complete?"});
  };
  for (int index = 0; index <= kNumDataBatches; ++index) {
    if (!batches.contains(index)) refuse("holds no " + batch_name(index, true), kExpected);
    const int64_t size = batches.at(index).images.size(), wanted = batches.at(1).images.size();
    if (size == wanted) continue;
    refuse(batch_name(index, true) + " has " + thousands(size) + " images",
           thousands(wanted) + ", as data_batch_1 has");
  }
}

// A file under the name of another.
void refuse_same_images(const Batches& batches, const std::string& source) {
  std::map<Hash128, int> seen;
  for (const auto& [index, batch] : batches) {
    const auto [other, is_new] = seen.emplace(batch.hash, index);
    if (is_new || batch.images.size() == 0) continue;
    throw Error({.where = source,
                 .what = batch_name(index, true) + " holds the images of " +
                         batch_name(other->second, true),
                 .expected = "six files of different images",
                 .advice = "look for a copy or a link under another name"});
  }
}

void append(const GrayImages& part, GrayImages& all) {
  all.labels.insert(all.labels.end(), part.labels.begin(), part.labels.end());
  all.pixels.insert(all.pixels.end(), part.pixels.begin(), part.pixels.end());
}

}  // namespace

const std::array<const char*, kCifarClasses> kCifarClassNames = {
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

uint8_t gray_value(uint8_t red, uint8_t green, uint8_t blue) {
  const float sum = kGray.red[red] + kGray.green[green] + kGray.blue[blue];
  return static_cast<uint8_t>(sum * 255.5f);
}

CifarFile read_cifar_file(std::span<const std::byte> bytes, const std::string& name,
                          bool is_pickle) {
  throw_if_stopped();
  if (bytes.size() > kMaxFileBytes) {
    throw Error({.where = name,
                 .what = "has " + std::to_string(bytes.size()) + " bytes",
                 .expected = "at most 32 MiB",
                 .advice = "is this a CIFAR-10 file?"});
  }
  RawBatch raw = is_pickle ? from_pickle(bytes, name) : read_binary(bytes, name);
  const auto size = static_cast<int64_t>(raw.labels.size());
  Hasher hasher;
  hasher.append(std::as_bytes(std::span(raw.labels)));
  for (size_t i = 0; i < raw.labels.size(); ++i) {
    hasher.append(std::span(raw.colours + i * raw.stride, kCifarColourBytes));
  }
  CifarFile batch{.images = {.labels = std::move(raw.labels), .pixels = {}},
                  .hash = hasher.digest()};
  batch.images.pixels.resize(static_cast<size_t>(size * kCifarPixels));
  parallel_ranges(size, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      convert(raw.colours + static_cast<size_t>(i) * raw.stride,
              std::span(batch.images.pixels)
                  .subspan(static_cast<size_t>(i * kCifarPixels), kCifarPixels));
    }
  });
  return batch;
}

bool holds_cifar_files(const std::string& folder) {
  return !batch_files(folder, false).empty() || !batch_files(folder, true).empty();
}

Cifar read_cifar(const std::string& source, Progress& progress) {
  Batches batches =
      is_folder(source) ? read_folder(source, progress) : read_archive(source, progress);
  refuse_incomplete(batches, source);
  refuse_same_images(batches, source);
  Cifar cifar;
  cifar.test = std::move(batches.at(0).images);
  Hasher hasher;
  size_t num_train = 0;
  for (const auto& [index, batch] : batches) {
    if (index > 0) num_train += batch.images.labels.size();
  }
  cifar.train.labels.reserve(num_train);
  cifar.train.pixels.reserve(num_train * kCifarPixels);
  for (auto& [index, batch] : batches) {
    hasher.append(to_hex(batch.hash));
    if (index > 0) append(std::exchange(batch.images, {}), cifar.train);
  }
  cifar.source_hash = to_hex(hasher.digest());
  return cifar;
}

}  // namespace lra::tasks
