// The Python layout of CIFAR-10: a pickled dictionary with "labels" and "data".
//
// The official files were written by Python 2. Those that Python 3 wrote again are read as well:
// protocols 2 to 5, keys of str or bytes, the names of NumPy 1 or 2.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lra::tasks {

struct CifarBatch {
  std::vector<int64_t> labels;         // not yet checked for their range
  std::span<const std::byte> colours;  // [N, 3072] uint8: red, green, blue planes; N = labels
  // Text for people, which some copies lack; then it is empty.
  std::vector<std::string> filenames;  // [N] "leptodactylus_pentadactylus_s_000004.png"
  std::string batch_label;             // "training batch 1 of 5"
};

// `bytes` must outlive the result. Protocol 2 of Python 3 stores bytes as text: the colors are
// then decoded into `*decoded`, which must outlive the result too; without it such a pickle is
// refused. Throws lra::Error that names `name`, and the offset where the pickle itself is damaged:
// no such keys, other kinds of values, a dtype other than uint8, a shape other than [N, 3072],
// Fortran order.
CifarBatch read_cifar_pickle(std::span<const std::byte> bytes, const std::string& name,
                             std::vector<std::byte>* decoded = nullptr);

// The names of the classes in batches.meta. Throws lra::Error that names `name` for another pickle.
std::vector<std::string> read_cifar_meta(std::span<const std::byte> bytes, const std::string& name);

}  // namespace lra::tasks
