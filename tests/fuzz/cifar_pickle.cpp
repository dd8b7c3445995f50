// The Python layout of CIFAR-10: pickles, which hostile hands could make run code.
// Covers: src/tasks/image/cifar_pickle.cpp src/tasks/image/pickle.cpp
// src/tasks/image/cifar_files.cpp Without: read_cifar( read_folder read_archive read_binary
// batch_name append GrayTables
#include "tasks/image/cifar_pickle.h"

#include "fuzz_target.h"
#include "tasks/image/cifar_files.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lra::fuzz::Input input(data, size);
  lra::tasks::CifarBatch batch;
  std::vector<std::byte> decoded;
  if (!lra::fuzz::accepts([&] {
        batch = lra::tasks::read_cifar_pickle(input.bytes(), "data_batch_1", &decoded);
      })) {
    return 0;
  }
  LRA_CHECK_EQ(batch.colours.size(), batch.labels.size() * 3072);
  lra::fuzz::accepts([&] {
    const auto file = lra::tasks::read_cifar_file(input.bytes(), "data_batch_1", true);
    LRA_CHECK_EQ(file.images.labels.size(), batch.labels.size());
  });
  if (batch.colours.empty()) return 0;
  const auto bytes = decoded.empty() ? input.bytes() : std::span<const std::byte>(decoded);
  LRA_CHECK(batch.colours.data() >= bytes.data() &&
            batch.colours.data() + batch.colours.size() <= bytes.data() + bytes.size());
  return 0;
}
