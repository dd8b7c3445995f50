// The binary layout of CIFAR-10.
// Covers: src/tasks/image/cifar_files.cpp
// Without: read_cifar read_folder read_archive read_pickle batch_name append GrayTables
#include "fuzz_target.h"
#include "tasks/image/cifar_files.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lra::fuzz::Input input(data, size);
  lra::tasks::CifarFile file;
  if (!lra::fuzz::accepts(
          [&] { file = lra::tasks::read_cifar_file(input.bytes(), "input.bin", false); })) {
    return 0;
  }
  constexpr size_t kPixels = lra::tasks::kCifarPixels, kRecord = 1 + 3 * kPixels;
  LRA_CHECK_EQ(file.images.labels.size() * kRecord, size);
  for (size_t i = 0; i < file.images.labels.size(); ++i) {
    const uint8_t* record = data + i * kRecord;
    LRA_CHECK_EQ(int{file.images.labels[i]}, int{record[0]});
    for (const size_t pixel : {size_t{0}, kPixels - 1}) {
      const uint8_t gray = lra::tasks::gray_value(record[1 + pixel], record[1 + kPixels + pixel],
                                                  record[1 + 2 * kPixels + pixel]);
      LRA_CHECK_EQ(int{file.images.pixels[i * kPixels + pixel]}, int{gray});
    }
  }
  return 0;
}
