// Text of strangers on its way to a terminal.
// Covers: src/base/text_format.cpp
// Without: human_bytes human_duration thousands percent fixed TextTable looks
#include "base/text_format.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lra::fuzz::Input input(data, size);
  const std::string text = lra::printable(input.text());
  for (const char c : text) LRA_CHECK(static_cast<unsigned char>(c) >= ' ' && c != '\x7F');
  LRA_CHECK(lra::printable(text) == text);
  LRA_CHECK_GE(lra::display_width(text), 0);
  LRA_CHECK_LE(static_cast<size_t>(lra::display_width(text)), text.size());
  return 0;
}
