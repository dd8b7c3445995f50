// The official files of Long ListOps. What is accepted reads the same after it was written.
// Covers: src/tasks/listops/tsv.cpp src/tasks/listops/expression.cpp
// Without: render_listops
#include "tasks/listops/tsv.h"

#include "fuzz_target.h"

namespace {

using namespace lra;
using namespace lra::tasks;

struct Example {
  std::vector<uint8_t> symbols;
  int label;
  bool operator==(const Example&) const = default;
};

std::vector<Example> parse(std::string_view text) {
  std::vector<Example> examples;
  // Blocks small enough that an input has several.
  read_listops_tsv(reader_of(text), "input.tsv", {.block_bytes = 64},
                   [&](std::span<const uint8_t> symbols, int label) {
                     examples.push_back({{symbols.begin(), symbols.end()}, label});
                   });
  return examples;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lra::fuzz::Input input(data, size);
  std::vector<Example> examples;
  if (!lra::fuzz::accepts([&] { examples = parse(input.text()); })) return 0;
  std::string written = kListOpsTsvHeader;
  for (const Example& example : examples) {
    append_listops_line(example.symbols, example.label, written);
  }
  LRA_CHECK(parse(written) == examples);
  return 0;
}
