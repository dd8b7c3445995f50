// The record of one run: result, settings and provenance, as `record.json` in its folder.
//
// The report reads nothing else. The file is written atomically and carries a schema version; a
// record of an unknown schema is refused with a clear message.
//
// Goals of the room `records`: a record alone explains its figure, records of earlier versions
// load, and each field is listed once. Non-goals: to detect forged records, to compute figures.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check_finding.h"
#include "base/config.h"
#include "records/provenance.h"
#include "records/run_identity.h"

namespace lra {

inline constexpr int kRecordSchema = 1;

enum class RunStatus { kRunning, kDone, kStopped, kDiverged, kFailed };
std::string to_string(RunStatus status);

// Fewer validation examples do not choose among weights: the last ones are tested.
inline constexpr int64_t kFewestToChoose = 20;

// One pass over a split.
struct Evaluation {
  int64_t step = 0;
  double loss = 0;
  double accuracy = 0;  // 0..1
  int64_t num_examples = 0;
  // Hidden positions, which loss and accuracy are of; absent: they are of the examples.
  std::optional<int64_t> num_positions = {};
};

// "2,000 examples", or "31,022 predicted places of 2,000 examples".
std::string examples_of(const Evaluation& evaluation);

// The highest accuracy in percent that counts as chance on a balanced two-class test set: 50 plus
// three binomial standard errors. 51.06 for 20000 examples.
double two_class_chance_limit(int64_t num_examples);

// One efficiency measurement (in its own child process).
struct Measurement {
  // "train" or "infer": random tokens of full length; "train on data" or "infer on data": the first
  // batch of training, of examples of all lengths.
  std::string mode;
  std::string dtype;
  int64_t length = 0, batch = 0;
  double steps_per_s = 0;   // median of the timed windows
  double tokens_per_s = 0;  // without padding
  double slowest_steps_per_s = 0, fastest_steps_per_s = 0;
  int64_t windows = 0;
  // A long step is timed in this many parts, each of as many of its sequences; absent: whole steps.
  std::optional<int64_t> parts = {};
  int64_t peak_resident_bytes = 0;
  int64_t peak_tensor_bytes = 0;  // of tensors alive at one time
  // Floating-point operations of a step by the model's definition (analysis/flop_count.h; three
  // forward passes when training), and of a second of this machine's matrix product, measured in
  // the same process.
  int64_t model_flops = 0;
  double gemm_flops_per_s = 0;
  // Median with batches that are read from the task's data; absent when no data were given.
  std::optional<double> pipeline_steps_per_s = {};
  std::optional<std::string> warning = {};    // why the figures may not be the machine's
  std::optional<double> examples_per_s = {};  // absent in records of earlier programs
  // Positions that are computed, padding and CLS included; only with batches of data.
  std::optional<double> computed_tokens_per_s = {};
};

// Share of the matrix product's speed that the model's operations reach.
double flops_utilisation(const Measurement& m);

// Examples in the splits of prepared data.
struct SplitSizes {
  int64_t train = 0, val = 0, test = 0;
};

// The first steps of a run that was trained on with other settings.
struct EarlierPart {
  int64_t steps = 0;                               // the last step of this part
  std::string config_hash = {}, fingerprint = {};  // while it was trained
  std::string change = {};  // of the settings after it: "train.steps=200 instead of 100"
};

// Masked pretraining of weights that a run began with. Its settings and the data of this run give
// its fingerprint if it had the same data.
struct Pretraining {
  int64_t steps = 0;
  std::string fingerprint = {};
  ConfigTable config = {};
};

// Trained weights that a run began with.
struct InitialWeights {
  std::string origin = {};  // which run they are of
  std::string hash = {};    // of all weights before the first step, 32 hexadecimal digits
  // Names that were drawn at random because the file lacks them or has them in another shape, and
  // names of the file that the model has no place for.
  std::vector<std::string> fresh = {}, unused = {};
  std::optional<Pretraining> pretraining = {};  // absent: the weights are not of such a run
};

// The comparison of settings that chose those of a run: a sweep.
struct Tuning {
  int64_t tried = 0;                     // settings that were compared, those of the run included
  int64_t steps = 0;                     // trained by all runs of all of them together
  std::string chosen_by = {};            // "mean validation accuracy of 3 seeds"
  std::vector<std::string> varied = {};  // "train.learning_rate"
  bool operator==(const Tuning&) const = default;
};

// The folder of a sweep's runs whose settings were not chosen, inside the folder of those chosen.
// A report of the outer folder leaves it out; it has to be named.
inline constexpr const char* kTriesFolder = "tries";

// The items of a list that records may lack; none without it.
template <typename T>
std::span<const T> items_of(const std::optional<std::vector<T>>& list) {
  return list ? std::span<const T>(*list) : std::span<const T>();
}
template <typename T>
std::span<const T> items_of(const std::optional<std::vector<T>>&&) = delete;  // would be gone

// The code of a model that is a Python class. Its bits are not promised to be the same at every
// number of threads.
struct PythonCode {
  std::string source_sha256 = {};                    // of the code that defines the class
  std::map<std::string, std::string> packages = {};  // name -> version, Python itself among them
};

struct RunRecord : RunIdentity {
  int schema = kRecordSchema;
  std::string kind = "train";  // or "bench"
  RunStatus status = RunStatus::kRunning;
  std::string failure;  // one line, when status is failed or diverged

  std::string validation;   // "own", "test" (validation set is the test set), "heldout"
  std::string checkpoint;   // which weights the test figure belongs to: "best" or "last"; "best
                            // readable" when the best were damaged
  std::string data_source;  // "generated", "imported"
  std::string weights_hash;

  int64_t num_parameters = 0, base_parameters = 0;
  // "apples-to-apples", "self-pretrained" or "free-for-all"; "diagnostic" for tasks outside of the
  // arena; "pretraining" for runs that predict masked inputs, which have no figure of the task.
  std::string division, division_reason;
  // True if data and settings outside [mixer] are those of a published preset, so that it may be
  // compared with the paper, in either division, since models of the paper themselves break the
  // rule of 10 %.
  bool published_setting = false;

  int64_t steps = 0, planned_steps = 0, examples = 0;
  int64_t tokens = 0;  // of these examples, without padding
  // Positions computed for them in training, padding and CLS included. Absent for measurements, and
  // in records of programs that counted padding in `tokens`.
  std::optional<int64_t> computed_tokens = {};
  // Steps of a full run: the preset's own number, 0 if there is no such preset and for
  // measurements; and the size of the whole test split, 0 if no data was read.
  int64_t preset_steps = 0, test_split_examples = 0;
  std::optional<SplitSizes> data_examples = {};     // absent when no data was read
  double train_seconds = 0;                         // only training steps
  double total_seconds = 0;                         // with evaluation and saving
  double train_tokens_per_s = 0;                    // over all training steps of this run
  std::optional<double> train_examples_per_s = {};  // alike; absent where computed_tokens is
  int64_t peak_resident_bytes = 0;
  // Peak memory of the tensors on a GPU. Absent for runs on the CPU, and with --profile.
  std::optional<int64_t> peak_device_bytes = {};
  // Estimate of peak_resident_bytes before the run. Absent without train.memory_check.
  std::optional<int64_t> estimated_resident_bytes = {};
  // Reason why training ended before planned_steps although the run is done; otherwise absent.
  std::optional<std::string> ended_by = {};
  // Bad steps (train.on_nonfinite) whose update was skipped, roll-backs, and the steps that these
  // undid. Absent if there were none.
  std::optional<int64_t> skipped_steps = {}, roll_backs = {}, undone_steps = {};
  // Warnings about the run, one sentence each: a schedule that does not fit the steps, a damaged
  // checkpoint that was skipped. Absent if there were none.
  std::optional<std::vector<std::string>> warnings = {};
  // Findings of the checks of the data. Absent if there are none, and in records of programs
  // before these checks.
  std::optional<std::vector<CheckFinding>> data_checks = {};
  std::optional<std::vector<EarlierPart>> earlier_parts = {};  // absent: one set of settings
  std::optional<InitialWeights> initial_weights = {};          // absent: drawn at random
  std::optional<Tuning> tuning = {};                           // absent: settings of no sweep
  std::optional<Evaluation> train, val, test, best_val;
  std::vector<Evaluation> val_curve;
  std::vector<Measurement> measurements;
  std::map<std::string, double> baselines;  // "majority" -> 0.173

  std::optional<PythonCode> python = {};  // absent for the models of lra itself
  ConfigTable config;                     // resolved
  Provenance provenance;
};

// Begins a warning that the presets are not the published ones (settings/shipped_configs.h).
inline constexpr const char* kEditedPresets = "edited presets: ";
// This warning, without the words in front; empty if there is none.
std::string edited_presets_of(const RunRecord& record);

// Under which identities the checkpoints of a run may have been written: its own first, then those
// of its earlier parts.
std::vector<RunIdentity> identities_of(const RunRecord& record);

// The most memory that the run took where it computed: main memory, or that of its GPU; 0: unknown.
int64_t peak_memory_bytes(const RunRecord& record);

std::string to_json(const RunRecord& record);
// Throws lra::Error for text that is not JSON, an unknown schema, a missing or ill-typed field.
RunRecord parse_record(const std::string& json_text, const std::string& name);

std::string to_json(const Measurement& measurement);
Measurement parse_measurement(const std::string& json_text, const std::string& name);

void write_record(const RunRecord& record, const std::string& path);
RunRecord read_record(const std::string& path);

}  // namespace lra
