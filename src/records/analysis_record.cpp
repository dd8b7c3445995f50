#include "records/analysis_record.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/quoted.h"
#include "io/atomic_file.h"
#include "records/record_json.h"

namespace lra {

void fields(auto& f, SpanFigures& s) {
  f("mean", s.mean);
  f("deviation", s.deviation);
  f("uniform", s.uniform);
  f("layers", s.layers);
  f("heads", s.heads);
}

void fields(auto& f, SpanResult& s) {
  f("tokens", s.tokens);
  f("with_cls", s.with_cls);
  f("pixels", s.pixels);
  f("mean_length", s.mean_length);
  f("least_row_sum", s.least_row_sum);
  f("largest_row_sum", s.largest_row_sum);
}

void fields(auto& f, GeneralizationResult& g) {
  f("train", g.train);
  f("test", g.test);
  f("gap", g.gap);
  f("gap_error", g.gap_error);
}

void fields(auto& f, Threshold& t) {
  f("accuracy", t.accuracy);
  f("step", t.step);
  f("seconds", t.seconds);
}

void fields(auto& f, ConvergenceResult& c) {
  f("eval_every", c.eval_every);
  f("thresholds", c.thresholds);
  f("best", c.best);
  f("last_step", c.last_step);
}

void fields(auto& f, EmbeddingsResult& e) {
  f("vocabulary", e.vocabulary);
  f("positions", e.positions);
  f("width", e.width);
  f("matrices", e.matrices);
  f("token_picture", e.token_picture);
  f("position_picture", e.position_picture);
  f("token_min", e.token_min);
  f("position_min", e.position_min);
  f("by_intensity", e.by_intensity);
  f("intensity_correlation", e.intensity_correlation);
  f("by_distance", e.by_distance);
  f("vertical", e.vertical);
  f("horizontal", e.horizontal);
}

void fields(auto& f, RolloutToken& t) {
  f("position", t.position);
  f("text", t.text);
  f("weight", t.weight);
}

void fields(auto& f, RolloutExample& e) {
  f("index", e.index);
  f("label", e.label);
  f("prediction", e.prediction);
  f("picture", e.picture);
  f("cls_weight", e.cls_weight);
  f("entropy", e.entropy);
  f("bright_weight", e.bright_weight);
  f("bright_pixels", e.bright_pixels);
  f("top", e.top);
}

void fields(auto& f, RolloutResult& r) { f("examples", r.examples); }

void fields(auto& f, ChangedInput& c) {
  f("change", c.change);
  f("value", c.value);
  f("score", c.score);
  f("refused", c.refused);
}

void fields(auto& f, ControlsResult& c) {
  f("scores", c.scores);
  f("baselines", c.baselines);
}

void fields(auto& f, TransferResult& t) {
  f("task", t.task);
  f("task_title", t.task_title);
  f("task_version", t.task_version);
  f("data_hash", t.data_hash);
  f("scores", t.scores);
}

void fields(auto& f, BreakdownGroup& g) {
  f("name", g.name);
  f("num_examples", g.num_examples);
  f("num_correct", g.num_correct);
}

void fields(auto& f, BreakdownFactor& factor) {
  f("name", factor.name);
  f("groups", factor.groups);
}

void fields(auto& f, BreakdownClass& c) {
  f("name", c.name);
  f("num_examples", c.num_examples);
  f("num_predicted", c.num_predicted);
  f("num_correct", c.num_correct);
}

void fields(auto& f, BreakdownResult& b) {
  f("score", b.score);
  f("classes", b.classes);
  f("confusion", b.confusion);
  f("macro_f1", b.macro_f1);
  f("auc", b.auc);
  f("factors", b.factors);
  f("correct", b.correct);
}

void fields(auto& f, AnalysisRecord& r) {
  f("kind", r.kind);
  fields(f, static_cast<RunIdentity&>(r));
  f("checkpoint", r.checkpoint);
  f("foreign_weights", r.foreign_weights);
  f("other_data", r.other_data);
  f("step", r.step);
  f("split", r.split);
  f("num_examples", r.num_examples);
  f("choices", r.choices);
  f("warnings", r.warnings);
  f("data_checks", r.data_checks);
  f("span", r.span);
  f("generalization", r.generalization);
  f("convergence", r.convergence);
  f("rollout", r.rollout);
  f("embeddings", r.embeddings);
  f("controls", r.controls);
  f("transfer", r.transfer);
  f("breakdown", r.breakdown);
  f("provenance", r.provenance);
}

namespace {

constexpr JsonLimits kAnalysisLimits = {.max_bytes = 16 << 20, .max_depth = 16, .max_keys = 1000};

class AnalysisInspection : public Inspection {
 public:
  using Inspection::Inspection;
  using Inspection::share;

  void share(const std::optional<double>& value, const std::string& what) const {
    if (value) share(*value, what);
  }
  void cosine(double value, const std::string& what) const {
    require(std::abs(value) <= 1 + 1e-6, what + " is " + std::to_string(value), "-1 to 1");
  }
  void cosines(const std::vector<double>& values, const std::string& what) const {
    for (const double value : values) cosine(value, what);
  }
  // The name of a file next to the record, which the report opens.
  void file(const std::string& file) const {
    const bool plain = !file.empty() && file[0] != '.' && file.find('/') == std::string::npos &&
                       file.find('\0') == std::string::npos;
    require(plain, "the file name " + in_quotes(file, 100), "a name without a folder");
  }

  void look_at(const SpanFigures& s) const {
    const auto distance = [&](double value) {
      require(value >= 0 && std::isfinite(value), "a span of " + std::to_string(value),
              "a distance");
    };
    for (const double value : {s.mean, s.deviation, s.uniform}) distance(value);
    for (const double value : s.layers) distance(value);
    for (const auto& layer : s.heads) {
      for (const double value : layer) distance(value);
    }
    require(s.layers.size() == s.heads.size(), "spans of another number of layers than of heads",
            "one per layer");
  }
  void look_at(const SpanResult& s) const {
    look_at(s.tokens);
    if (s.with_cls) look_at(*s.with_cls);
    if (s.pixels) look_at(*s.pixels);
  }
  void look_at(const GeneralizationResult& g) const {
    share(g.train.accuracy, "an accuracy");
    share(g.test.accuracy, "an accuracy");
    require(std::abs(g.gap) <= 1, "a gap of " + std::to_string(g.gap), "-1 to 1");
    share(g.gap_error, "a standard error");
  }
  void look_at(const ConvergenceResult& c) const {
    for (const Threshold& t : c.thresholds) share(t.accuracy, "a threshold");
    if (c.best) share(c.best->accuracy, "an accuracy");
  }
  void look_at(const EmbeddingsResult& e) const {
    for (const auto* name : {&e.matrices, &e.token_picture, &e.position_picture}) file(*name);
    cosine(e.token_min, "a similarity");
    cosine(e.position_min, "a similarity");
    cosine(e.intensity_correlation.value_or(0), "a correlation");
    for (const auto* list : {&e.by_intensity, &e.by_distance, &e.vertical, &e.horizontal}) {
      cosines(*list, "a similarity");
    }
  }
  void look_at(const RolloutResult& r) const {
    for (const RolloutExample& e : r.examples) {
      file(e.picture);
      share(e.cls_weight, "a weight");
      share(e.bright_weight, "a weight");
      share(e.bright_pixels, "a share of pixels");
      for (const RolloutToken& t : e.top) share(t.weight, "a weight");
    }
  }
  void look_at(const std::vector<ChangedInput>& scores) const {
    for (const ChangedInput& c : scores) {
      if (c.score) share(c.score->accuracy, "an accuracy");
    }
    require(!scores.empty(), "no scores", "at least that on unchanged inputs");
  }
  void look_at(const ControlsResult& c) const {
    look_at(c.scores);
    for (const auto& [name, accuracy] : c.baselines) share(accuracy, "a baseline");
  }
  void look_at(const TransferResult& t) const { look_at(t.scores); }
  void counts(int64_t correct, int64_t examples, const std::string& what) const {
    require(correct >= 0 && correct <= examples,
            std::to_string(correct) + " right of " + std::to_string(examples) + " in " + what,
            "a part of them");
  }
  void look_at(const BreakdownResult& b) const {
    share(b.score.accuracy, "an accuracy");
    share(b.macro_f1, "a macro F1");
    share(b.auc, "an area under the ROC curve");
    for (const BreakdownFactor& factor : b.factors) {
      for (const BreakdownGroup& g : factor.groups)
        counts(g.num_correct, g.num_examples, "a group");
    }
    for (const BreakdownClass& c : b.classes) {
      counts(c.num_correct, std::min(c.num_examples, c.num_predicted), "a class");
    }
    require(b.score.num_examples >= 0, "a negative number of examples", "0 or more");
    const int64_t bytes = (b.score.num_examples + 7) / 8;
    require(static_cast<int64_t>(b.correct.size()) == 2 * bytes &&
                b.correct.find_first_not_of("0123456789abcdef") == std::string::npos,
            "'correct' of " + std::to_string(b.correct.size()) + " characters",
            std::to_string(2 * bytes) + " hexadecimal digits");
    int64_t right = 0;
    for (const bool bit : b.correct_bits()) right += bit;
    require(std::abs(static_cast<double>(right) -
                     b.score.accuracy * static_cast<double>(b.score.num_examples)) < 0.5,
            std::to_string(right) + " right examples in 'correct'",
            "the share that the accuracy states");
  }
  // Returns whether there is one.
  template <typename Result>
  bool part(const AnalysisRecord& record, const std::string& kind,
            const std::optional<Result>& result) const {
    require(result.has_value() == (record.kind == kind),
            result ? "a " + kind + " in a record of kind " + in_quotes(record.kind, 100)
                   : "a record of kind '" + kind + "' without one",
            "the result that 'kind' names, and no other");
    if (result) look_at(*result);
    return result.has_value();
  }
};

void refuse_impossible(const AnalysisRecord& r, const std::string& name) {
  const AnalysisInspection inspection(name);
  const std::array found = {inspection.part(r, "span", r.span),
                            inspection.part(r, "generalization", r.generalization),
                            inspection.part(r, "convergence", r.convergence),
                            inspection.part(r, "rollout", r.rollout),
                            inspection.part(r, "embeddings", r.embeddings),
                            inspection.part(r, "controls", r.controls),
                            inspection.part(r, "transfer", r.transfer),
                            inspection.part(r, "breakdown", r.breakdown)};
  bool any = false;
  for (const bool one : found) any |= one;
  inspection.require(
      any, "kind " + in_quotes(r.kind, 100),
      "span, generalization, convergence, rollout, embeddings, controls, transfer or breakdown");
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
  for (const std::string& warning : run.warnings.value_or(std::vector<std::string>{})) {
    if (!warning.starts_with(kEditedPresets)) continue;
    if (!analysis.warnings) analysis.warnings.emplace();
    if (std::ranges::find(*analysis.warnings, warning) != analysis.warnings->end()) continue;
    analysis.warnings->push_back(warning);
  }
}

Json to_json_object(const AnalysisRecord& record) { return file_to_json(record); }
Json to_json_object(const BreakdownResult& breakdown) { return RecordWriter::to_object(breakdown); }

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
  refuse_impossible(record, name);
  return record;
}

void write_analysis(const AnalysisRecord& record, const std::string& path) {
  refuse_impossible(record, path);
  write_file_atomically(path, to_json(record));
}

AnalysisRecord read_analysis(const std::string& path) {
  return parse_analysis(read_file(path, kAnalysisLimits.max_bytes), path);
}

}  // namespace lra
