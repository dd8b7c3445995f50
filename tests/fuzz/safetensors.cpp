// Checkpoints and tensors. Either the input as it is, or a header, a zero byte and the data.
// Covers: src/io/safetensors.cpp
// Without: write_safetensors header_text check_tensors
#include "io/safetensors.h"

#include "fuzz_target.h"
#include "memory_file.h"

namespace {

std::string with_length(std::string_view header, std::string_view data) {
  std::string padded(header);
  padded.resize((padded.size() + 7) / 8 * 8, ' ');
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(padded.size() >> (8 * i));
  return file + padded + std::string(data);
}

void check(const lra::SafetensorsFile& file, size_t file_size) {
  size_t total = 0;
  for (const lra::TensorView& tensor : file.tensors()) {
    int64_t bytes = lra::size_in_bytes(tensor.dtype);
    for (const int64_t side : tensor.shape) bytes *= side;
    LRA_CHECK_EQ(static_cast<size_t>(bytes), tensor.data.size());
    LRA_CHECK(file.find(tensor.name) == &tensor);
    LRA_CHECK(!lra::to_string(tensor.dtype).empty());
    total += tensor.data.size();
  }
  LRA_CHECK_LT(total, file_size);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  std::string file(input.text());
  if (!file.empty() && file[0] == '{') {
    const std::string_view header = input.until('\0');
    file = with_length(header, input.text());
  }
  lra::fuzz::MemoryFile memory;
  memory.set(std::as_bytes(std::span(file)));
  lra::fuzz::accepts([&] { check(lra::SafetensorsFile::open(memory.path()), file.size()); });
  return 0;
}
