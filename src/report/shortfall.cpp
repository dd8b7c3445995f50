#include "report/shortfall.h"

#include "base/text_format.h"
#include "report/settings.h"

namespace lra::report {
namespace {

std::string part_of(int64_t part, int64_t whole, const std::string& unit) {
  if (part >= whole) return "";
  return thousands(part) + " of " + thousands(whole) + " " + unit;
}

// train.test_examples of the run, 0 when there is no limit.
int64_t test_limit(const RunRecord& run) {
  const ConfigValue* limit = find_setting(run.config, "train", "test_examples");
  const int64_t* value = limit ? std::get_if<int64_t>(&limit->value) : nullptr;
  return value ? *value : 0;
}

std::string test_shortfall(const RunRecord& run) {
  const int64_t used = run.test->num_examples;
  if (run.test_split_examples) return part_of(used, *run.test_split_examples, "test examples");
  const int64_t limit = test_limit(run);
  return limit > 0 && used >= limit ? "the first " + thousands(used) + " test examples" : "";
}

}  // namespace

std::string shortfall_of(const RunRecord& run) {
  if (!run.test) return "";
  const std::string steps =
      run.preset_steps ? part_of(run.steps, *run.preset_steps, "steps") : std::string();
  const std::string test = test_shortfall(run);
  return steps + (steps.empty() || test.empty() ? "" : ", ") + test;
}

bool has_published_setting(const RunRecord& run) {
  if (run.preset == "small") return false;
  return run.published_setting.value_or(run.division == "apples-to-apples");
}

}  // namespace lra::report
