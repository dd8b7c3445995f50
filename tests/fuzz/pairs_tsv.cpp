// Lines of pairs of documents. What is read does not depend on the size of the blocks.
// Covers: src/data/text_lines.cpp src/tasks/retrieval/pair_files.cpp
// Without: read_pairs find_pair_files PaperTexts is_file
#include <string>

#include "data/text_lines.h"
#include "fuzz_target.h"
#include "tasks/retrieval/pair_files.h"

namespace {

using namespace lra;
using namespace lra::tasks;

// Everything that was read, and the problem that ended it.
std::string read(std::string_view text, int num_columns, const LineLimits& limits) {
  std::string seen;
  try {
    read_lines(
        reader_of(text), "input.tsv",
        [&](std::string_view line, int64_t number, uint64_t offset) {
          LRA_CHECK(text.substr(offset).starts_with(line));
          const PairLine pair = parse_pair_line(line, num_columns, "input.tsv", number);
          LRA_CHECK(line.starts_with(pair.ids));
          seen += std::to_string(pair.label) + std::string(pair.id1) + "\t" +
                  std::string(pair.id2) + "\t" + std::string(pair.text1) + "\t" +
                  std::string(pair.text2) + "\n";
        },
        limits);
  } catch (const lra::Error& error) {
    seen += error.what();
  }
  return seen;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  const uint8_t choice = input.byte();
  const int num_columns = choice & 1 ? 5 : 3;
  const size_t line_bytes = choice & 2 ? 40 : 4000;
  const size_t block_bytes = size_t{1} + (choice >> 2);
  LRA_CHECK(
      read(input.text(), num_columns, {.block_bytes = 4096, .line_bytes = line_bytes}) ==
      read(input.text(), num_columns, {.block_bytes = block_bytes, .line_bytes = line_bytes}));
  return 0;
}
