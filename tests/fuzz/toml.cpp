// Settings: a TOML file. What is accepted reads the same after it was written.
// Covers: src/io/toml.cpp src/base/config.cpp
// Without: parse_toml_file ConfigDescriber describe_config apply_override merge
#include "io/toml.h"
#include "base/config.h"
#include "fuzz_target.h"

namespace {

struct Settings {
  bool flag = false;
  int64_t steps = 1;
  double rate = 0;
  std::string kind = "a";
  void fields(auto& f) {
    f("flag", flag, "");
    f("steps", steps, "", lra::at_least(1));
    f("rate", rate, "", lra::rate());
    f("kind", kind, "", lra::one_of({"a", "b"}));
  }
};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const lra::fuzz::Input input(data, size);
  lra::ConfigTable table;
  if (!lra::fuzz::accepts([&] { table = lra::parse_toml(input.text(), "input.toml"); })) return 0;
  const std::string written = lra::to_toml(table);
  // A reader takes no more; the names of deep tables are repeated in what is written.
  if (written.size() > 64 << 10) return 0;
  const lra::ConfigTable again = lra::parse_toml(written, "written");
  LRA_CHECK(lra::canonical_text(again) == lra::canonical_text(table));
  lra::fuzz::accepts([&] {
    const auto settings = lra::read_config<Settings>(table, "");
    LRA_CHECK(settings.steps >= 1 && settings.rate >= 0 && settings.rate < 1);
    const auto same = lra::read_config<Settings>(lra::write_config(settings), "");
    LRA_CHECK(same.rate == settings.rate && same.kind == settings.kind);
  });
  return 0;
}
