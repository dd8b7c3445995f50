// Arrays of a .npz file.
// Covers: src/tasks/own/npy.cpp src/io/byte_reader.cpp
// Without: seek expect_end f32 f64
#include "tasks/own/npy.h"

#include "base/utf8.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  const std::vector<std::byte> bytes(input.bytes().begin(), input.bytes().end());
  lra::fuzz::accepts([&] {
    const lra::tasks::NpyArray array(bytes, "x");
    int64_t elements = 1;
    for (const int64_t length : array.shape()) elements *= length;
    LRA_CHECK_EQ(elements, array.size());
    for (int64_t i = 0; i < array.size(); ++i) {
      if (array.is_text() || array.is_whole()) LRA_CHECK_LE(array.text(i).size(), size + 20);
      if (!array.is_text()) (void)array.number(i);
    }
  });
  return 0;
}
