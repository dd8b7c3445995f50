// CIFAR-10 (Krizhevsky 2009) as its author ships it, read as gray images.
//
// Two layouts. Binary: data_batch_1.bin to data_batch_5.bin and test_batch.bin, records of 3073
// bytes: the label, then 1024 red, 1024 green, 1024 blue values, row by row. Python: the same names
// without ".bin", pickles, which Python reads (data/python_reader.h). Both come as a folder or as a
// tar archive, which is streamed: nothing is unpacked to disk.
//
// Gray values are those of TensorFlow's rgb_to_grayscale for 8-bit values, in float32: y = 0.2989
// R/255 + 0.5870 G/255 + 0.1140 B/255, summed from left to right; floor(255.5 y).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace lra {
class Progress;
}

namespace lra::tasks {

inline constexpr int64_t kCifarSide = 32, kCifarPixels = kCifarSide * kCifarSide;
// Bytes of one color image: planes red, green, blue; and with its label in front.
inline constexpr size_t kCifarColourBytes = 3 * kCifarPixels,
                        kCifarRecordBytes = 1 + kCifarColourBytes;
inline constexpr int64_t kCifarClasses = 10;
extern const std::array<const char*, kCifarClasses> kCifarClassNames;  // "airplane", ...

// Images in the order of the files.
struct GrayImages {
  std::vector<uint8_t> labels;  // [N]
  std::vector<uint8_t> pixels;  // [N, 1024], row by row
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  void append(const GrayImages& more) {
    labels.insert(labels.end(), more.labels.begin(), more.labels.end());
    pixels.insert(pixels.end(), more.pixels.begin(), more.pixels.end());
  }
};

struct Cifar {
  GrayImages train, test;
  std::string source_hash;  // of the labels and colors in order; the same for both layouts
};

// One file of the layout.
struct CifarFile {
  GrayImages images;
  Hash128 hash;  // of labels and colors, in order
};

uint8_t gray_value(uint8_t red, uint8_t green, uint8_t blue);

// The bytes of one file, in the Python layout or the binary one. Throws lra::Error that names
// `name` and offset, for what read_cifar refuses in a file.
CifarFile read_cifar_file(std::span<const std::byte> bytes, const std::string& name,
                          bool is_pickle);

// The folder `root`, or the official one below it, that has the files of a layout; empty if none
// has. Throws lra::Error for one that has some of them.
std::string cifar_folder(const std::string& root);

// `source` is a folder with the files, a folder that holds cifar-10-batches-bin or
// cifar-10-batches-py, or an archive with one of them. Throws lra::Error that names file and
// offset: a file that is missing or has another number of images than the others (the official ones
// have 10,000 each), two files with the same images, a size that is no whole number of records, a
// label over 9, a file over 32 MiB, damaged archives and pickles.
Cifar read_cifar(const std::string& source, Progress& progress);

}  // namespace lra::tasks
