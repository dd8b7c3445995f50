// The whole program: behind the operator torch.ops.lra.run for `python -m lra`, and as a function
// for the program `lra`, which has no tensors (cli/compute.h).
#include <torch/library.h>

#include "base/default_threads.h"
#include "base/revision.h"
#include "cli/program.h"
#include "data/batch_order.h"
#include "io/config_json.h"
#include "mixers/all.h"

namespace lra::python {
namespace {

// `words` without the program's name -> exit code. The dispatcher has given up the interpreter's
// lock; lra_python::* take it while they run the user's code.
int64_t run(std::vector<std::string> words) {
  words.insert(words.begin(), "lra");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return cli::run_command(static_cast<int>(words.size()), pointers.data());
}

// The table of mixers as JSON: [{name, title, paper, cost, settings: [{name, type, default, range,
// help}], groups: [{name, learning_rate, weight_decay}]}].
std::string mixer_table() {
  Json table = Json::array();
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    Json settings = Json::array();
    for (const FieldInfo& field : spec->describe()) {
      settings.push_back({{"name", field.name},
                          {"type", field.type},
                          {"default", field.default_value},
                          {"range", field.range},
                          {"help", field.help}});
    }
    Json groups = Json::array();
    for (const mixers::GroupSpec& group : spec->groups) {
      groups.push_back({{"name", group.name},
                        {"learning_rate", group.learning_rate},
                        {"weight_decay", group.weight_decay}});
    }
    table.push_back({{"name", spec->name},
                     {"title", spec->title},
                     {"paper", spec->paper},
                     {"cost", spec->cost},
                     {"settings", settings},
                     {"groups", groups}});
  }
  return json_text(table);
}

// The examples of a step: lra.data.Order is compared with it.
std::vector<int64_t> batch_order(int64_t num_examples, int64_t batch, int64_t seed, int64_t step) {
  std::vector<int64_t> indices(static_cast<size_t>(batch));
  BatchOrder(num_examples, batch, static_cast<uint64_t>(seed)).fill(step, indices);
  return indices;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lra, m) {
  m.def("run(str[] words) -> int", run);
  m.def("default_threads() -> int", [] { return int64_t{default_threads().count}; });
  m.def("mixer_table() -> str", mixer_table);
  m.def("batch_order(int num_examples, int batch, int seed, int step) -> int[]", batch_order);
}

}  // namespace lra::python

extern "C" int lra_library_run(int argc, char** argv) { return lra::cli::run_command(argc, argv); }

extern "C" const char* lra_library_revision() {
  static const std::string revision = lra::program_revision();
  return revision.c_str();
}
