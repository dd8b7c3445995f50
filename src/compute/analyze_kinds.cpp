// Analyses of one run on its own inputs: each one's inputs, results, and files next to the record.
#include "analysis/attention_weights.h"
#include "analysis/convergence.h"
#include "analysis/embeddings.h"
#include "analysis/examples.h"
#include "analysis/generalization.h"
#include "analysis/rollout.h"
#include "analysis/span.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "compute/analyses.h"
#include "data/contact_sheet.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "tasks/data_checks.h"
#include "training/loop/batches.h"
#include "training/loop/breakdown.h"
#include "training/settings/stored_run.h"

namespace lra::cli {
namespace {

using training::LoadedRun;
using training::ModelPrecision;

constexpr int64_t kTopTokens = 10;

AnalysisRecord about(const RunRecord& run, const Asked& asked) {
  AnalysisRecord record;
  static_cast<RunIdentity&>(record) = run;
  record.kind = asked.kind;
  record.step = run.steps;
  record.provenance = program_provenance(asked.common);
  add_warnings_of(run, record);
  record.data_checks = run.data_checks;
  return record;
}

// Arguments that span and rollout share.
void state_attention_choices(AnalysisRecord& record) {
  record.choices["padding"] = "none: every example is read alone, at its own length";
  record.choices["precision"] = "float32";
  record.choices["weights"] =
      "derivatives of a head's output with respect to the tokens' values, queries and keys fixed; "
      "divided by the sum of each query's";
}

// The paper's, for Image; where guessing reaches as much, 10 and 20 points above chance.
std::vector<double> default_thresholds(const training::RunConfig& config) {
  const auto num_classes = static_cast<double>(config.make_task()->shape().num_classes);
  if (num_classes < 2 || 1 / num_classes < 0.3) return {0.3, 0.35};
  return {1 / num_classes + 0.1, 1 / num_classes + 0.2};
}

}  // namespace

AnalysisRecord empty_analysis(const LoadedRun& run, const Asked& asked, const Dataset* dataset) {
  AnalysisRecord record = about(run.stored.record, asked);
  if (dataset) record.split = asked.a.split;
  record.checkpoint = run.checkpoint;
  if (const std::string of = run.foreign_weights(); !of.empty()) record.foreign_weights = of;
  if (const std::string changed = run.changed_code(); !changed.empty()) {
    if (!record.warnings) record.warnings.emplace();
    record.warnings->push_back(changed);
  }
  if (dataset && dataset->hash() != run.stored.record.data_hash) {
    record.other_data = dataset->hash();
    record.data_checks = tasks::checks_of(*run.task, *dataset);
  }
  record.step = run.weights.progress.step;
  return record;
}

std::optional<AnalysisRecord> analyze_span(const Asked& asked) {
  const LoadedRun run = asked.run(ModelPrecision::kFloat32);
  const Dataset dataset = asked.data_of(run);
  const Split split = run.stored.config.split_of(*run.task, dataset, asked.a.split);
  const analysis::AttentionWeights attention(run.encoder(), run.stored.config.model_config,
                                             run.stored.config.mixer_spec(), asked.folder);
  const std::vector<int64_t> examples = drawn_examples(split.size(), asked.a.samples);
  AnalysisRecord record = empty_analysis(run, asked, &dataset);
  record.num_examples = static_cast<int64_t>(examples.size());
  Progress bar = asked.bar(record.kind, record.num_examples);
  record.span = analysis::measure_span(attention, split, run.task->shape(), examples,
                                       [&](int64_t count) { bar.update(count); });
  if (!record.span) return {};
  bar.finish();
  state_attention_choices(record);
  record.choices["CLS"] = attention.has_cls() ? "left out as query and as key; counted in with_cls"
                                              : "this model has none";
  record.choices["distance"] = "tokens of the sequence; of images also pixels, Euclidean";
  record.choices["modules"] = "every head of every layer, equal weights";
  record.choices["examples"] = kDrawnExamples;
  record.choices["uniform"] = "(L^2 - 1) / (3 L), mean over the examples' lengths";
  return record;
}

std::optional<AnalysisRecord> analyze_generalization(const Asked& asked) {
  const LoadedRun run = asked.run(ModelPrecision::kAsTrained);
  const Dataset dataset = asked.data_of(run);
  AnalysisRecord record = empty_analysis(run, asked, &dataset);
  record.split = "train and test";
  const auto pass = [&](const std::string& name) -> std::optional<Evaluation> {
    const auto result =
        training::evaluate_run(run, dataset, name, asked.a.examples, asked.common.quiet);
    if (result.stopped) return {};
    return result.summary;
  };
  const auto train = pass("train");
  const auto test = train ? pass("test") : std::nullopt;
  if (!test) return {};
  record.generalization = analysis::generalization_of(*train, *test);
  record.num_examples = train->num_examples + test->num_examples;
  record.choices["train accuracy"] = "a pass of its own over the training split, dropout off";
  record.choices["examples"] = asked.examples_choice();
  record.choices["gap_error"] = "standard error of a difference of two binomial shares";
  return record;
}

std::optional<AnalysisRecord> analyze_breakdown(const Asked& asked) {
  const LoadedRun run = asked.run(ModelPrecision::kAsTrained);
  const Dataset dataset = asked.data_of(run);
  const auto result = training::evaluate_run(run, dataset, asked.a.split, 0, asked.common.quiet);
  if (result.stopped) return {};
  AnalysisRecord record = empty_analysis(run, asked, &dataset);
  record.num_examples = result.summary.num_examples;
  record.breakdown =
      training::breakdown_of(result, run.stored.config, *run.task, dataset, asked.a.split);
  return record;
}

std::optional<AnalysisRecord> analyze_convergence(const Asked& asked) {
  const training::StoredRun run = training::read_run({asked.folder});
  if (run.record.val_curve.empty()) {
    refuse(asked.folder, "has no validation curve", "a run that was validated at least once");
  }
  AnalysisRecord record = about(run.record, asked);
  record.split = "val";
  record.num_examples = run.record.val_curve.back().num_examples;
  record.convergence = analysis::measure_convergence(
      run.record, run.config.train.eval_every,
      asked.a.thresholds.empty() ? default_thresholds(run.config)
                                 : analysis::parse_thresholds(asked.a.thresholds));
  record.choices["step"] = "of the first evaluation at or above the threshold, not interpolated";
  record.choices["seconds"] =
      "the run's mean time of a training step times the step; evaluations and saving left out";
  return record;
}

namespace {

struct RolloutOf {
  const LoadedRun& run;
  const analysis::AttentionWeights& attention;
  const Split& split;
  std::string folder;  // of pictures
};

int64_t prediction_of(const RolloutOf& r, int64_t index) {
  const at::NoGradGuard no_grad;
  const auto batch = training::make_batch(r.split, {&index, 1}, r.run.task->shape(), true);
  const auto sent = training::to_device(batch, r.run.model->device());
  return r.run.model->forward(sent.input, {}).argmax(1).item<int64_t>();
}

void add_rollouts(const RolloutOf& r, int64_t index, RolloutResult& result) {
  const TaskShape shape = r.run.task->shape();
  // Shuffled pixels make no picture.
  const bool shuffled = r.run.stored.config.train.token_order == "shuffled";
  const int64_t side = shuffled ? 0 : image_side(shape);
  const int64_t prediction = prediction_of(r, index);
  for (int64_t tower = 0; tower < shape.num_towers; ++tower) {
    const at::Tensor tokens_1L = analysis::sequence_tokens(r.split, index, tower, shape);
    if (tokens_1L.size(1) == 0) continue;
    const std::span<const uint8_t> pixels =
        side > 0 ? r.split.stored_bytes(index) : std::span<const uint8_t>();
    const bool has_cls = r.attention.has_cls();
    const at::Tensor row_S =
        analysis::rollout(r.attention, tokens_1L, r.run.stored.config.model_config.pooling);
    RolloutExample example = analysis::rollout_figures(row_S, has_cls, pixels, kTopTokens);
    example.index = index;
    example.label = r.split.label(index);
    example.prediction = prediction;
    example.picture = "rollout-" + std::to_string(index) +
                      (shape.num_towers > 1 ? "-" + std::to_string(tower + 1) : "") + ".png";
    const auto tokens = tokens_1L.accessor<int32_t, 2>();
    for (RolloutToken& token : example.top) {
      token.text = r.run.task->token_text(tokens[0][token.position]);
    }
    const auto picture = analysis::rollout_picture(row_S, has_cls, pixels, side);
    make_folder(r.folder);
    write_file_atomically(r.folder + "/" + example.picture, encode_png(picture));
    result.examples.push_back(std::move(example));
  }
}

std::vector<int64_t> rollout_examples(const AnalyzeArguments& a, const Split& split) {
  std::vector<int64_t> indices = a.indices;
  for (int64_t i = 0; a.indices.empty() && i < std::min(a.count, split.size()); ++i) {
    indices.push_back(i);
  }
  for (const int64_t index : indices) {
    if (index >= 0 && index < split.size()) continue;
    refuse("--index", "there is no example " + std::to_string(index),
           "0 to " + std::to_string(split.size() - 1));
  }
  return indices;
}

}  // namespace

std::optional<AnalysisRecord> analyze_rollout(const Asked& asked) {
  const LoadedRun run = asked.run(ModelPrecision::kFloat32);
  const Dataset dataset = asked.data_of(run);
  const Split split = run.stored.config.split_of(*run.task, dataset, asked.a.split);
  const analysis::AttentionWeights attention(run.encoder(), run.stored.config.model_config,
                                             run.stored.config.mixer_spec(), asked.folder);
  const std::vector<int64_t> indices = rollout_examples(asked.a, split);
  AnalysisRecord record = empty_analysis(run, asked, &dataset);
  record.num_examples = static_cast<int64_t>(indices.size());
  const RolloutOf rollout{run, attention, split, training::RunFolder{asked.folder}.analysis()};
  record.rollout.emplace();
  Progress bar = asked.bar(record.kind, record.num_examples);
  for (const int64_t index : indices) {
    if (stop_requested()) return {};
    add_rollouts(rollout, index, *record.rollout);
    bar.update();
  }
  bar.finish();
  state_attention_choices(record);
  const std::string& pooling = run.stored.config.model_config.pooling;
  record.choices["query"] = pooling == "cls"     ? "CLS"
                            : pooling == "first" ? "the first token"
                                                 : "the mean of all tokens";
  record.choices["residual"] = "half the mean of the heads, half the identity";
  record.choices["weights of tokens"] = "without CLS, divided by their sum";
  return record;
}

std::optional<AnalysisRecord> analyze_embeddings(const Asked& asked) {
  const LoadedRun run = asked.run(ModelPrecision::kFloat32);
  const auto& settings = run.stored.config.model_config;
  const auto embeddings = analysis::embeddings_of(run.encoder(), settings.pooling == "cls");
  const int64_t side = image_side(run.task->shape());
  const auto shown = analysis::shown_positions(embeddings.position_PD.size(0), side);
  const at::Tensor token_VV = analysis::cosine_similarity(embeddings.token_VD);
  const at::Tensor position_PP =
      analysis::cosine_similarity(embeddings.position_PD.index_select(0, shown.indices));
  AnalysisRecord record = empty_analysis(run, asked);
  EmbeddingsResult result = analysis::embedding_figures(token_VV, position_PP, shown, side > 0);
  result.positions = embeddings.position_PD.size(0);
  result.width = embeddings.token_VD.size(1);
  result.matrices = "embeddings.safetensors";
  result.token_picture = "embeddings-tokens.png";
  result.position_picture = "embeddings-positions.png";
  const std::string place = training::RunFolder{asked.folder}.analysis();
  make_folder(place);
  const auto write_picture = [&](const std::string& name, const ColourImage& picture) {
    write_file_atomically(place + "/" + name, encode_png(picture));
  };
  write_picture(result.token_picture, analysis::token_picture(token_VV));
  write_picture(result.position_picture, analysis::position_picture(position_PP, shown));
  const auto view = [](const char* name, const at::Tensor& t) {
    return TensorView{name,
                      Dtype::kF32,
                      t.sizes().vec(),
                      {static_cast<const std::byte*>(t.const_data_ptr()), t.nbytes()}};
  };
  write_safetensors(place + "/" + result.matrices,
                    {view("token", token_VV), view("position", position_PP)});
  record.embeddings = std::move(result);
  record.choices["similarity"] = "cosine";
  record.choices["positions"] = settings.positions + ", that of CLS left out; every " +
                                std::to_string(shown.stride) +
                                (side > 0 ? ". row and column of pixels" : ". one");
  record.choices["colours"] = "-1 blue, 0 white, 1 red";
  return record;
}

std::optional<AnalysisRecord> analysis_of(const std::string& kind, const CommonOptions& common,
                                          const AnalyzeArguments& a, const std::string& folder) {
  static const std::map<std::string, Analysis*> kinds = {
      {"span", analyze_span},           {"generalization", analyze_generalization},
      {"rollout", analyze_rollout},     {"convergence", analyze_convergence},
      {"controls", analyze_controls},   {"embeddings", analyze_embeddings},
      {"breakdown", analyze_breakdown}, {"transfer", analyze_transfer},
      {"reach", analyze_reach}};
  return kinds.at(kind)({kind, common, a, folder});
}

}  // namespace lra::cli
