// The Python layout of CIFAR-10: dictionaries pickled by Python 2 with protocol 2.
//
// A pickle is a program, and Python runs whatever it names. Here it is data: only the opcodes that
// these files use are known, the three names they hold (numpy's array, its constructor and dtype)
// are compared and never looked up, and everything else is refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lra::tasks {

struct CifarBatch {
  std::vector<int64_t> labels;         // not yet checked for their range
  std::span<const std::byte> colours;  // [N, 3072] uint8: red, green, blue planes; N = labels
};

// `bytes` must outlive the result. Throws lra::Error that names `name` and the offset.
CifarBatch read_cifar_pickle(std::span<const std::byte> bytes, const std::string& name);

}  // namespace lra::tasks
