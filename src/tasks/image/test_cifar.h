// Small CIFAR-10 files for tests, in both official layouts.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "data/test_fixtures.h"
#include "io/atomic_file.h"
#include "tasks/image/cifar_files.h"

namespace lra::tasks {

struct CifarRecord {
  uint8_t label = 0;
  std::string colours;  // 3072 bytes: planes red, green, blue
};

// `count` noisy images, all labels in turn; images of one class have about the same brightness.
inline std::vector<CifarRecord> small_cifar_records(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<CifarRecord> records;
  for (int64_t i = 0; i < count; ++i) {
    CifarRecord record{.label = static_cast<uint8_t>(i % kCifarClasses), .colours = ""};
    for (int64_t k = 0; k < 3 * kCifarPixels; ++k) {
      record.colours += static_cast<char>(record.label * 20U + random.below(70));
    }
    records.push_back(std::move(record));
  }
  return records;
}

inline std::string cifar_binary(const std::vector<CifarRecord>& records) {
  std::string bytes;
  for (const CifarRecord& record : records)
    bytes += static_cast<char>(record.label) + record.colours;
  return bytes;
}

// The bytes that Python 2 wrote with cPickle.dump(batch, file, 2), in the manner of the official
// files.
inline std::string cifar_pickle(
    const std::vector<CifarRecord>& records, const std::string& label = "training batch 1 of 5",
    const std::function<std::string(size_t)>& name_of = [](size_t i) {
      return "picture_" + std::to_string(i) + ".png";
    }) {
  const auto text = [](const std::string& s) {
    return std::string("U") + static_cast<char>(s.size()) + s;
  };
  const auto little = [](size_t number, int size) {
    std::string bytes;
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFF);
    return bytes;
  };
  std::string labels, names, colours;
  size_t num_names = 0;
  for (const CifarRecord& record : records) {
    labels += std::string("K") + static_cast<char>(record.label);
    names += text(name_of(num_names++)) + "r" + little(300, 4);
    colours += record.colours;
  }
  using namespace std::string_literals;
  return "\x80\x02}q\x01("s + text("batch_label") + "q\x02" + text(label) + "q\x03" +
         text("labels") + "q\x04]q\x05(" + labels + "e" + text("data") +
         "q\x06"
         "cnumpy.core.multiarray\n_reconstruct\nq\x07"
         "cnumpy\nndarray\nq\x08K\x00\x85"s +
         text("b") + "\x87R(K\x01M" + little(records.size(), 2) + "M" + little(3072, 2) +
         "\x86"
         "cnumpy\ndtype\nq\x09" +
         text("u1") + "K\x00K\x01\x87R(K\x03"s + text("|") +
         "NNNJ\xFF\xFF\xFF\xFFJ\xFF\xFF\xFF\xFFK\x00tb\x89T"s + little(colours.size(), 4) +
         colours + "tb" + text("filenames") + "q\x0A](" + names + "eu.";
}

// The names of the six files without their ending, in the order of small_cifar().
inline const std::array<std::string, 6> kCifarNames = {
    "data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"};

// 6 x 20 images.
inline std::array<std::vector<CifarRecord>, 6> small_cifar() {
  std::array<std::vector<CifarRecord>, 6> files;
  for (size_t i = 0; i < files.size(); ++i) files[i] = small_cifar_records(20, i + 1);
  return files;
}

// A folder cifar-10-batches-bin below `root`, by default with 5 x 20 images for training and 20 for
// the test.
inline void write_small_cifar(
    const std::string& root, const std::array<std::vector<CifarRecord>, 6>& files = small_cifar()) {
  for (size_t i = 0; i < files.size(); ++i) {
    write_text(root + "/cifar-10-batches-bin/" + kCifarNames[i] + ".bin", cifar_binary(files[i]));
  }
}

// The same with 5 x 800 of the first training images of the official files and the first 800 of the
// test, which `folder` holds.
inline std::array<std::vector<CifarRecord>, 6> real_cifar(const std::string& folder) {
  std::array<std::vector<CifarRecord>, 6> files;
  const std::string train = read_file(folder + "/data_batch_1.bin", 1 << 25);
  const std::string test = read_file(folder + "/test_batch.bin", 1 << 25);
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t k = 0; k < 800; ++k) {
      const char* record = i < 5 ? &train.at(3073 * (800 * i + k)) : &test.at(3073 * k);
      files[i].push_back(
          {.label = static_cast<uint8_t>(record[0]), .colours = std::string(record + 1, 3072)});
    }
  }
  return files;
}

}  // namespace lra::tasks
