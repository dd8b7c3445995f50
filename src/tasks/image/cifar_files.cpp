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

// 0 for the test batch, 1 to 5 for the data batches.
std::string batch_name(int index, bool is_pickle) {
  const std::string name = index == 0 ? "test_batch" : "data_batch_" + std::to_string(index);
  return is_pickle ? name : name + ".bin";
}

// A pickle, which Python reads and checks, as records of the binary layout.
std::vector<std::byte> records_of_pickle(std::span<const std::byte> bytes,
                                         const std::string& name) {
  const PickledBatch found = read_pickle_with_python(bytes, name);
  const auto labels = found.texts.value("labels", std::vector<uint8_t>());
  if (found.data.size() != labels.size() * kCifarColourBytes || labels.empty()) {
    throw Error({.where = name,
                 .what = "holds no images",
                 .expected = "data_batch_1 to 5 or test_batch of cifar-10-python.tar.gz"});
  }
  std::vector<std::byte> records;
  records.reserve(labels.size() * kCifarRecordBytes);
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto colours = std::span(found.data).subspan(i * kCifarColourBytes, kCifarColourBytes);
    records.push_back(std::byte{labels[i]});
    records.insert(records.end(), colours.begin(), colours.end());
  }
  return records;
}

void convert(std::span<const std::byte> colours, std::span<uint8_t> gray) {
  const auto* red = reinterpret_cast<const uint8_t*>(colours.data());
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
  if (is_pickle) return read_cifar_file(records_of_pickle(bytes, name), name, false);
  if (bytes.size() % kCifarRecordBytes != 0) {
    throw Error({.where = name,
                 .what = "has " + std::to_string(bytes.size()) + " bytes",
                 .expected = "whole records of " + std::to_string(kCifarRecordBytes) + " bytes",
                 .advice = "fetch it again"});
  }
  CifarFile batch;
  GrayImages& images = batch.images;
  ByteReader reader(bytes, name);
  while (!reader.at_end()) {
    const uint8_t label = reader.u8("label");
    if (label >= kCifarClasses) reader.fail("label is " + std::to_string(label), "0 to 9");
    images.labels.push_back(label);
    reader.skip(kCifarColourBytes, "colours");
  }
  const auto colours_of = [&](int64_t i) {
    return bytes.subspan(static_cast<size_t>(i) * kCifarRecordBytes + 1, kCifarColourBytes);
  };
  Hasher hasher;
  hasher.append(std::as_bytes(std::span(images.labels)));
  for (int64_t i = 0; i < images.size(); ++i) hasher.append(colours_of(i));
  batch.hash = hasher.digest();
  images.pixels.resize(static_cast<size_t>(images.size() * kCifarPixels));
  parallel_ranges(images.size(), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      convert(
          colours_of(i),
          std::span(images.pixels).subspan(static_cast<size_t>(i * kCifarPixels), kCifarPixels));
    }
  });
  return batch;
}

std::string cifar_folder(const std::string& root) {
  for (const bool is_pickle : {false, true}) {
    const std::vector<std::string> files = batch_files(root, is_pickle);
    if (!files.empty()) return fs::path(files[0]).parent_path().string();
  }
  return "";
}

Cifar read_cifar(const std::string& source, Progress& progress) {
  Batches batches =
      is_folder(source) ? read_folder(source, progress) : read_archive(source, progress);
  refuse_incomplete(batches, source);
  refuse_same_images(batches, source);
  Cifar cifar;
  cifar.test = std::move(batches.at(0).images);
  Hasher hasher;
  for (auto& [index, batch] : batches) {
    hasher.append(to_hex(batch.hash));
    if (index > 0) cifar.train.append(std::exchange(batch.images, {}));
  }
  cifar.source_hash = to_hex(hasher.digest());
  return cifar;
}

}  // namespace lra::tasks
