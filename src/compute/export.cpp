// lra export: the weights of a run with all that is needed to use them elsewhere.
#include <utility>

#include "base/text_format.h"
#include "cli/compute.h"
#include "data/new_folder.h"
#include "io/atomic_file.h"
#include "io/digest.h"
#include "report/report.h"
#include "training/run/loaded_run.h"

namespace lra::cli {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 36;

// The card of other weights than those that the run tested has no accuracy, which a reader would
// take for theirs.
std::string card_of(const RunRecord& record, int64_t step) {
  RunRecord shown = record;
  std::string note;
  if (record.test && record.test->step != step) {
    shown.test.reset();
    note = "\nThe weights are those of step " + thousands(step) +
           ". The run tested those of step " + thousands(record.test->step) +
           ": their accuracy is in `record.json`.\n";
  }
  return report::results_card(shown) + note +
         "\nFiles: `model.safetensors` has the weights, with PyTorch's names and the identity of "
         "the "
         "run as metadata; `config.toml` every setting; `record.json` the record of the run; "
         "`SHA256SUMS` the checksums for `sha256sum -c`.\n\n"
         "    lra eval FOLDER --data DATA\n"
         "    lra train TASK MODEL --init-from FOLDER\n";
}

void write_files(const training::LoadedRun& run, const std::string& weights,
                 const std::string& folder) {
  const training::RunFolder from{run.folder};
  std::string sums;
  for (const auto& [name, text] :
       {std::pair("model.safetensors", read_file(weights, kMaxFileBytes)),
        std::pair("config.toml", read_file(from.config(), kMaxFileBytes)),
        std::pair("record.json", read_file(from.record(), kMaxFileBytes)),
        std::pair("README.md", card_of(run.stored.record, run.weights.progress.step))}) {
    write_file_atomically(folder + "/" + name, text);
    sums += digest_file(DigestKind::kSha256, folder + "/" + name) + "  " + name + "\n";
  }
  write_file_atomically(folder + "/SHA256SUMS", sums);
}

}  // namespace

ExitCode export_run(const Program& program, const ExportArguments& a) {
  // Weights that cannot be read here could not be read there.
  const training::LoadedRun run(a.run, a.weights, training::ModelPrecision::kAsTrained);
  const std::string weights = training::checkpoint_file(a.run, run.checkpoint);
  make_folder(folder_of(a.out));
  write_new_folder(a.out, [&](const std::string& partial) { write_files(run, weights, partial); });
  const RunRecord& record = run.stored.record;
  const int64_t step = run.weights.progress.step;
  return print_result(program,
                      {{"run", a.run},
                       {"folder", a.out},
                       {"step", step},
                       {"model", record.model},
                       {"task", record.task}},
                      record.model_title + " on " + record.task_title + ", weights of step " +
                          std::to_string(step) + ": " + a.out + "\nevaluate them with: lra eval " +
                          a.out + "\n");
}

}  // namespace lra::cli
