// Pathfinder metadata as NumPy arrays. The magic and the size of the header are put in front here.
// Covers: src/tasks/pathfinder/files.cpp
// Without: read_pathfinder pathfinder_line batch_number parse_text
#include <string>

#include "fuzz_target.h"
#include "pathfinder_metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  const uint8_t choice = input.byte();
  std::string file = "\x93NUMPY";
  if (choice < 4) {
    const int version = choice;
    const std::string_view header = input.until('\n');
    const size_t num_size_bytes = version == 1 ? 2 : 4;
    file += {static_cast<char>(version), '\0'};
    for (size_t i = 0; i < num_size_bytes; ++i) {
      file += static_cast<char>((header.size() + 1) >> (8 * i));
    }
    file += std::string(header) + "\n";
  }
  file += input.text();
  lra::fuzz::check_pathfinder_metadata(std::as_bytes(std::span(file)));
  return 0;
}
