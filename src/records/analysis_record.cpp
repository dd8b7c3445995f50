#include "records/analysis_record.h"

#include <algorithm>
#include <cmath>

#include "base/quoted.h"
#include "io/atomic_file.h"
#include "records/record_json.h"

namespace lra {

LRA_FIELDS(SpanFigures, mean, deviation, uniform, layers, heads)
LRA_FIELDS(SpanResult, tokens, with_cls, pixels, mean_length, least_row_sum, largest_row_sum)
LRA_FIELDS(GeneralizationResult, train, test, gap, gap_error)
LRA_FIELDS(Threshold, accuracy, step, seconds)
LRA_FIELDS(ConvergenceResult, eval_every, thresholds, best, last_step)
LRA_FIELDS(EmbeddingsResult, vocabulary, positions, width, matrices, token_picture,
           position_picture, token_min, position_min, by_intensity, intensity_correlation,
           by_distance, vertical, horizontal)
LRA_FIELDS(RolloutToken, position, text, weight)
LRA_FIELDS(RolloutExample, index, label, prediction, picture, cls_weight, entropy, bright_weight,
           bright_pixels, top)
LRA_FIELDS(RolloutResult, examples)
LRA_FIELDS(ChangedInput, change, value, score, refused)
LRA_FIELDS(ControlsResult, scores, baselines)
LRA_FIELDS(TransferResult, task, task_title, task_version, data_hash, scores)
LRA_FIELDS(ReachFigures, layer, distance, equal, shares, window)
LRA_FIELDS(ReachResult, layers, scores, num_gradients)
LRA_FIELDS(BreakdownGroup, name, num_examples, num_correct)
LRA_FIELDS(BreakdownFactor, name, groups)
LRA_FIELDS(BreakdownClass, name, num_examples, num_predicted, num_correct)
LRA_FIELDS(BreakdownResult, score, classes, confusion, macro_f1, auc, factors, correct)

void fields(auto& f, AnalysisRecord& value) {
  LRA_MEMBERS(kind);
  fields(f, static_cast<RunIdentity&>(value));
  LRA_MEMBERS(checkpoint, foreign_weights, other_data, step, split, num_examples, choices, warnings,
              data_checks, span, generalization, convergence, rollout, embeddings, controls,
              transfer, reach, breakdown, provenance);
}

namespace {

constexpr JsonLimits kAnalysisLimits = {.max_bytes = 16 << 20, .max_depth = 16, .max_keys = 1000};

// The name of a file next to the record, which the report opens.
bool is_plain_name(const std::string& file) {
  return !file.empty() && file[0] != '.' && file.find('/') == std::string::npos &&
         file.find('\0') == std::string::npos;
}

// True if there is one bit for each example, in hexadecimal digits.
bool has_all_bits(const BreakdownResult& b) {
  const int64_t bytes = (b.score.num_examples + 7) / 8;
  return b.score.num_examples >= 0 && static_cast<int64_t>(b.correct.size()) == 2 * bytes &&
         b.correct.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Refuses what would lead a reader outside of the record: the hash tells whether anything else was
// changed.
void refuse_unusable(const AnalysisRecord& r, const std::string& name) {
  const auto require = [&](bool possible, const std::string& what, const std::string& expected) {
    if (!possible) throw Error({.where = name, .what = what, .expected = expected});
  };
  const std::map<std::string, bool> parts = {{"span", r.span.has_value()},
                                             {"generalization", r.generalization.has_value()},
                                             {"convergence", r.convergence.has_value()},
                                             {"rollout", r.rollout.has_value()},
                                             {"embeddings", r.embeddings.has_value()},
                                             {"controls", r.controls.has_value()},
                                             {"transfer", r.transfer.has_value()},
                                             {"reach", r.reach.has_value()},
                                             {"breakdown", r.breakdown.has_value()}};
  std::string kinds;
  for (const auto& [kind, is_there] : parts) {
    kinds += (kinds.empty() ? "" : ", ") + kind;
    require(is_there == (kind == r.kind) || !parts.contains(r.kind),
            is_there ? "a " + kind + " in a record of kind " + in_quotes(r.kind, 100)
                     : "a record of kind '" + kind + "' without one",
            "the result that 'kind' names, and no other");
  }
  require(parts.contains(r.kind), "kind " + in_quotes(r.kind, 100), "one of " + kinds);
  std::vector<std::string> files;
  if (r.embeddings)
    files = {r.embeddings->matrices, r.embeddings->token_picture, r.embeddings->position_picture};
  if (r.rollout) {
    for (const RolloutExample& e : r.rollout->examples) files.push_back(e.picture);
  }
  for (const std::string& file : files)
    require(is_plain_name(file), "the file name " + in_quotes(file, 100),
            "a name without a folder");
  for (const auto* scores :
       {r.controls ? &r.controls->scores : nullptr, r.transfer ? &r.transfer->scores : nullptr})
    require(!scores || !scores->empty(), "no scores", "at least that on unchanged inputs");
  require(!r.breakdown || has_all_bits(*r.breakdown), "'correct' without a bit for each example",
          "hexadecimal digits, two for eight examples");
}

}  // namespace

const Threshold* ConvergenceResult::at(double accuracy) const {
  const auto found = std::find_if(thresholds.begin(), thresholds.end(), [&](const Threshold& t) {
    return std::abs(t.accuracy - accuracy) < 1e-9;
  });
  return found == thresholds.end() ? nullptr : &*found;
}

const Evaluation* own_score(const std::vector<ChangedInput>& scores) {
  const bool found = !scores.empty() && scores[0].change == "none" && scores[0].score.has_value();
  return found ? &*scores[0].score : nullptr;
}

void add_warnings_of(const RunRecord& run, AnalysisRecord& analysis) {
  for (const std::string& warning : items_of(run.warnings)) {
    if (!warning.starts_with(kEditedPresets)) continue;
    if (!analysis.warnings) analysis.warnings.emplace();
    if (std::ranges::find(*analysis.warnings, warning) != analysis.warnings->end()) continue;
    analysis.warnings->push_back(warning);
  }
}

Json to_json_object(const AnalysisRecord& record) { return file_to_json(record); }
Json to_json_object(const BreakdownResult& breakdown) { return to_json_value(breakdown); }

namespace {

std::optional<double> share_of(int64_t part, int64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::optional<double> BreakdownClass::recall() const { return share_of(num_correct, num_examples); }
std::optional<double> BreakdownClass::precision() const {
  return share_of(num_correct, num_predicted);
}

void BreakdownResult::set_correct(const std::vector<bool>& bits) {
  constexpr const char* kDigits = "0123456789abcdef";
  correct.clear();
  for (size_t i = 0; i < (bits.size() + 7) / 8 * 8; i += 4) {
    size_t digit = 0;
    for (size_t j = i; j < i + 4; ++j) digit = 2 * digit + (j < bits.size() && bits[j]);
    correct += kDigits[digit];
  }
}

std::vector<bool> BreakdownResult::correct_bits() const {
  std::vector<bool> bits;
  for (size_t i = 0; i < static_cast<size_t>(score.num_examples); ++i) {
    const char c = correct.at(i / 4);
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    bits.push_back((digit >> (3 - i % 4)) % 2 == 1);
  }
  return bits;
}

std::string to_json(const AnalysisRecord& record) {
  return json_text(to_json_object(record), 2) + "\n";
}

AnalysisRecord parse_analysis(const std::string& text, const std::string& name) {
  auto record = parse_record_file<AnalysisRecord>(text, name, kAnalysisLimits, "an analysis");
  refuse_unusable(record, name);
  return record;
}

void write_analysis(const AnalysisRecord& record, const std::string& path) {
  refuse_unusable(record, path);
  write_file_atomically(path, to_json(record));
}

AnalysisRecord read_analysis(const std::string& path) {
  return parse_analysis(read_file(path, kAnalysisLimits.max_bytes), path);
}

}  // namespace lra
