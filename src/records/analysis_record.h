// The record of one analysis of a run, as RUN/analysis/KIND.json; pictures and matrices are next to
// it as RUN/analysis/KIND-*.png and *.safetensors.
//
// Like a run record it is written atomically, read strictly, and carries a schema version.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"
#include "records/run_record.h"

namespace lra {

inline constexpr int kAnalysisSchema = 1;

// Mean distance between a query and the tokens it attends to, weighted by the attention weights.
// Heads whose weights are not a mean over tokens have no span; a model has one for all heads or
// none.
struct SpanFigures {
  double mean = 0;                         // over layers, heads, examples and queries
  double deviation = 0;                    // of the examples' own means, n - 1
  double uniform = 0;                      // the same with equal weights over the whole example
  std::vector<double> layers;              // mean over the heads of a layer
  std::vector<std::vector<double>> heads;  // [layer][head]
};

struct SpanResult {
  SpanFigures tokens;                   // CLS and padding left out; distance in tokens
  std::optional<SpanFigures> with_cls;  // CLS counts as the token before the first; absent: no CLS
  std::optional<SpanFigures> pixels;    // as `tokens`, Euclidean distance in pixels; images alone
  double mean_length = 0;               // tokens of an example, without CLS and padding
  // Least and largest sum of a query's weights before they are divided by it.
  double least_row_sum = 0, largest_row_sum = 0;
};

struct GeneralizationResult {
  Evaluation train, test;  // passes of their own, dropout off
  double gap = 0;          // train less test accuracy, 0..1
  double gap_error = 0;    // standard error: two independent binomial shares
};

// The first time validation accuracy was at or above `accuracy`; nothing if it never was.
struct Threshold {
  double accuracy = 0;  // 0..1
  std::optional<int64_t> step = {};
  std::optional<double> seconds = {};  // of training, evaluations and saving left out
};

struct ConvergenceResult {
  int64_t eval_every = 0;  // steps between two evaluations: how exact a step is
  std::vector<Threshold> thresholds;
  std::optional<Evaluation> best = {};
  int64_t last_step = 0;  // of the curve

  // Null for an accuracy that is not one of the thresholds.
  const Threshold* at(double accuracy) const;
};

// Cosine similarities. Pictures are names of files next to the record.
struct EmbeddingsResult {
  int64_t vocabulary = 0, positions = 0, width = 0;
  std::string matrices;              // safetensors: "token" [V, V], "position" [P, P]
  std::string token_picture;         // V x V
  std::string position_picture;      // images: tiles of positions, laid out as the image
  double token_min = 0;              // least similarity of two different tokens
  double position_min = 0;           // and of two different positions
  std::vector<double> by_intensity;  // images: mean similarity of grays 1, 2, .. 8 apart
  // Images: Pearson's correlation of similarity and distance, over all pairs of different grays.
  std::optional<double> intensity_correlation = {};
  std::vector<double> by_distance;           // mean similarity of positions 1, 2, .. 8 apart
  std::vector<double> vertical, horizontal;  // images: 1, 2, .. 8 pixels apart in one direction
};

// A token that much attention comes from.
struct RolloutToken {
  int64_t position = 0;  // 0 is the first after CLS
  std::string text;
  double weight = 0;  // share of all tokens' weight, CLS left out
};

struct RolloutExample {
  int64_t index = 0, label = 0, prediction = 0;
  std::string picture;                    // image beside map; text: a strip
  std::optional<double> cls_weight = {};  // share that stays on CLS; absent: no CLS
  double entropy = 0;                     // of the tokens' weights, over log(length): 1 is uniform
  std::optional<double> bright_weight = {};  // images: weight on pixels brighter than the mean
  std::optional<double> bright_pixels = {};  // images: the share of pixels that are
  std::vector<RolloutToken> top;             // largest weights first
};

struct RolloutResult {
  std::vector<RolloutExample> examples;
};

// One evaluation of a run on inputs that it was not trained with; the first of a list uses the
// run's own inputs.
struct ChangedInput {
  std::string change;  // "none", "shuffled tokens", "receptive field", "length", "positions"
  std::string value;   // "64" tokens, "stretched"; empty where there is nothing to say
  std::optional<Evaluation> score = {};
  std::string refused;  // why there is no score

  std::string title() const { return value.empty() ? change : change + " " + value; }
};

// The score that others are compared with: the first, if its inputs are unchanged and it has one.
const Evaluation* own_score(const std::vector<ChangedInput>& scores);

struct ControlsResult {
  std::vector<ChangedInput> scores;
  std::map<std::string, double> baselines;  // of the run's record: trivial classifiers, 0..1
};

// The run's weights on another task.
struct TransferResult {
  std::string task, task_title;
  int64_t task_version = 0;
  std::string data_hash;
  std::vector<ChangedInput> scores;
};

// How far one sequence layer reaches, or all of them (analysis/reach.h).
struct ReachFigures {
  std::string layer;           // "layer 0", "all layers"
  int64_t distance = 0;        // within which 90 % of the norm of gradients lies, in tokens
  int64_t equal = 0;           // the same for equal norms at all places
  std::vector<double> shares;  // of the norm at the distances 0, 1, 2 to 3, 4 to 7, ...
  // The smallest window that costs at most a point of accuracy, as do all larger ones; nothing if
  // the largest one costs more, or none was measured.
  std::optional<int64_t> window = {};
};
struct ReachResult {
  std::vector<ReachFigures> layers;  // the last one: all
  std::vector<ChangedInput> scores;  // the run's own first, then with layers in windows
  int64_t num_gradients = 0;         // examples whose gradients were measured
};

// Examples of one kind, and how many of them were predicted right.
struct BreakdownGroup {
  std::string name;  // "501 to 743", "MAX"
  int64_t num_examples = 0, num_correct = 0;
};
// All examples by one property: "length", "depth", "root operator", "rating".
struct BreakdownFactor {
  std::string name;
  std::vector<BreakdownGroup> groups;
};
struct BreakdownClass {
  std::string name;
  int64_t num_examples = 0, num_predicted = 0, num_correct = 0;
  // Shares of num_examples and num_predicted; nothing where there are none.
  std::optional<double> recall() const;
  std::optional<double> precision() const;
};

// Where a model fails.
struct BreakdownResult {
  Evaluation score;
  std::vector<BreakdownClass> classes;          // in the order of the labels
  std::vector<std::vector<int64_t>> confusion;  // [label][prediction]; empty for many classes
  double macro_f1 = 0;
  std::optional<double> auc = {};        // of two classes
  std::vector<BreakdownFactor> factors;  // properties that differ between examples
  // One bit for each example of the split, 1 if it was predicted right: two hexadecimal digits a
  // byte, the first example in its highest bit (as numpy.unpackbits reads it).
  std::string correct;

  void set_correct(const std::vector<bool>& bits);
  std::vector<bool> correct_bits() const;  // score.num_examples of them
};

// Identity of the analyzed run.
struct AnalysisRecord : RunIdentity {
  int schema = kAnalysisSchema;
  std::string kind;  // "span", "generalization", "convergence", "breakdown", ...

  std::string checkpoint;  // "best", "last", "step_N" or a file; empty when no weights were read
  // Owner of these weights, and the hash of the data, if they are not the run's own.
  std::optional<std::string> foreign_weights = {}, other_data = {};
  int64_t step = 0;                            // of those weights, else of the run
  std::string split;                           // empty when no examples were read
  int64_t num_examples = 0;                    // that were read; of generalization: of both splits
  std::map<std::string, std::string> choices;  // stated choices: "CLS" -> "left out"
  // Warnings of the run's record about its data and presets, and doubts about other data that was
  // read. Absent in records of earlier programs.
  std::optional<std::vector<std::string>> warnings = {};
  // Findings of the checks of the data: that of the run, or other data that was read.
  std::optional<std::vector<CheckFinding>> data_checks = {};

  // The one that `kind` names.
  std::optional<SpanResult> span = {};
  std::optional<GeneralizationResult> generalization = {};
  std::optional<ConvergenceResult> convergence = {};
  std::optional<RolloutResult> rollout = {};
  std::optional<EmbeddingsResult> embeddings = {};
  std::optional<ControlsResult> controls = {};
  std::optional<TransferResult> transfer = {};
  std::optional<ReachResult> reach = {};
  std::optional<BreakdownResult> breakdown = {};

  Provenance provenance;
};

// Adds the warnings of `run` that begin with kEditedPresets, and are not there yet.
void add_warnings_of(const RunRecord& run, AnalysisRecord& analysis);

std::string to_json(const AnalysisRecord& record);
Json to_json_object(const AnalysisRecord& record);
Json to_json_object(const BreakdownResult& breakdown);
// Throws lra::Error for text that is not JSON, an unknown schema or kind, a missing, unknown or
// ill-typed field, a result of another kind, and figures that cannot be: NaN, shares outside 0..1,
// names of files that lead out of the folder.
AnalysisRecord parse_analysis(const std::string& json_text, const std::string& name);

// Refuses everything that parse_analysis refuses, so that nothing unreadable is written.
void write_analysis(const AnalysisRecord& record, const std::string& path);
AnalysisRecord read_analysis(const std::string& path);

}  // namespace lra
