// Settings from the command line, --set key=value, one a line, over a table. The table that comes
// of it can be written and read again. Covers: src/base/config.cpp Without: ConfigReader
// ConfigDescriber ConfigWriter range_text nearest_name suggestion edit_distance bound_text join
// erase
#include "base/config.h"
#include "fuzz_target.h"
#include "io/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::Input input(data, size);
  lra::ConfigTable table = lra::parse_toml("[train]\nsteps = 5\n[mixer]\nname = \"a\"\n", "base");
  lra::ConfigTable over;
  while (!input.text().empty()) {
    const std::string assignment(input.until('\x1E'));
    if (!lra::fuzz::accepts([&] { lra::apply_override(over, assignment); })) return 0;
  }
  lra::merge(table, over);
  const std::string written = lra::to_toml(table);
  const lra::ConfigTable again = lra::parse_toml(written, "written");
  LRA_CHECK(lra::canonical_text(again) == lra::canonical_text(table));
  return 0;
}
