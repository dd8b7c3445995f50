// Frames of examples from the reader of own data: whatever they say, what is handed out lies within
// them.
// Covers: src/data/frame_file.cpp
#include <unistd.h>

#include <vector>

#include "data/frame_file.h"
#include "fuzz_target.h"

namespace {

using lra::Frame;

double sum_of(Frame& frame, int64_t sequence, int64_t example) {
  if (frame.element() == Frame::Element::kText) {
    double sum = 0;
    for (const uint8_t byte : frame.text(sequence, example)) sum += byte;
    return sum;
  }
  std::vector<double> numbers;
  frame.append_numbers(sequence, example, numbers);
  LRA_CHECK_EQ(static_cast<int64_t>(numbers.size()),
               frame.length(sequence, example) * frame.channels());
  return numbers.empty() ? 0 : numbers.front();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const lra::FrameFile file("/tmp");
  LRA_CHECK_EQ(::ftruncate(file.descriptor(), 0), 0);
  LRA_CHECK_EQ(::pwrite(file.descriptor(), data, size, 0), static_cast<ssize_t>(size));
  double sum = 0;
  lra::fuzz::accepts([&] {
    file.for_each([&](Frame& frame) {
      for (int64_t i = 0; i < frame.size(); ++i) {
        LRA_CHECK_GE(frame.label(i), 0);
        LRA_CHECK(frame.split(i) <= lra::FrameSplit::kTest);
        for (int64_t g = 0; g < frame.num_groups(); ++g) {
          sum += static_cast<double>(frame.group(g, i));
        }
        for (int64_t s = 0; s < frame.num_sequences(); ++s) sum += sum_of(frame, s, i);
      }
    });
  });
  // The check keeps the sum from being optimized away.
  LRA_CHECK(sum != -1);
  return 0;
}
