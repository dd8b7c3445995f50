#include "records/analysis_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/scratch_folder.h"
#include "io/json.h"

namespace lra {
namespace {

using testing::HasSubstr;

// A record about a run, its result still missing.
AnalysisRecord about_a_run(const std::string& kind) {
  AnalysisRecord r;
  r.kind = kind;
  r.task = "image";
  r.task_title = "Image <b>größe</b>";
  r.task_version = 3;
  r.model = "bigbird";
  r.model_title = "BigBird";
  r.preset = "small";
  r.seed = UINT64_MAX;
  r.config_hash = "c1";
  r.data_hash = "d1";
  r.fingerprint = "f1";
  r.checkpoint = "best";
  r.step = 175;
  r.split = "val";
  r.num_examples = 1000;
  r.choices = {{"CLS", "left out"}, {"distance", "tokens"}};
  r.provenance.command = {"lra", "analyze"};
  r.provenance.kernels = {{"attention", "avx512"}};
  return r;
}

AnalysisRecord span_record() {
  AnalysisRecord r = about_a_run("span");
  const SpanFigures tokens{1.0 / 3, 0.5, 341, {0.25, 0.75}, {{0.1, 0.4}, {0.7, 0.8}}};
  r.span = SpanResult{.tokens = tokens,
                      .with_cls = tokens,
                      .pixels = tokens,
                      .mean_length = 1024,
                      .least_row_sum = 0.999,
                      .largest_row_sum = 1.001};
  return r;
}

AnalysisRecord generalization_record() {
  AnalysisRecord r = about_a_run("generalization");
  r.generalization = GeneralizationResult{{1, 0.1, 0.9, 3}, {4, 0.4, 0.5, 6}, 0.4, 0.01};
  return r;
}

AnalysisRecord convergence_record() {
  AnalysisRecord r = about_a_run("convergence");
  r.convergence = ConvergenceResult{
      175, {{0.30, 350, 12.5}, {0.35, {}, {}}}, Evaluation{525, 1.7, 0.34, 10000}, 700};
  return r;
}

AnalysisRecord embeddings_record() {
  AnalysisRecord r = about_a_run("embeddings");
  r.embeddings = EmbeddingsResult{256,        1025,    64,    "embeddings.safetensors",
                                  "a.png",    "b.png", -0.25, -0.5,
                                  {0.9, 0.8}, -0.75,   {0.7}, {0.6, 0.55},
                                  {0.5}};
  return r;
}

AnalysisRecord rollout_record() {
  AnalysisRecord r = about_a_run("rollout");
  r.rollout = RolloutResult{{{7, 1, 0, "rollout-7.png", 0.4, 0.8, 0.6, 0.3, {{12, "\n", 0.25}}},
                             {8, 0, 0, "rollout-8.png", {}, 0.9, {}, {}, {}}}};
  return r;
}

AnalysisRecord controls_record() {
  AnalysisRecord r = about_a_run("controls");
  r.controls = ControlsResult{
      {{"none", "16", Evaluation{175, 0.5, 0.8, 40}, ""}, {"length", "9000", {}, "run: too long"}},
      {{"majority", 0.5}}};
  return r;
}

AnalysisRecord transfer_record() {
  AnalysisRecord r = about_a_run("transfer");
  r.transfer = TransferResult{
      "pathx", "Path-X", 2, "d1", {{"positions", "stretched", Evaluation{9, 0.7, 0.51, 8}, "x"}}};
  return r;
}

AnalysisRecord reach_record() {
  AnalysisRecord r = about_a_run("reach");
  r.reach =
      ReachResult{{{"layer 0", 12, 57, {0.25, 0.5, 0.25}, 16}, {"all layers", 60, 57, {1}, {}}},
                  {{"none", "", Evaluation{175, 0.5, 0.8, 40}, ""},
                   {"layer 0 in windows of", "16", Evaluation{175, 0.5, 0.8, 40}, ""}},
                  8};
  return r;
}

AnalysisRecord breakdown_record() {
  AnalysisRecord r = about_a_run("breakdown");
  BreakdownResult& b = r.breakdown.emplace();
  b.score = Evaluation{175, 0.5, 0.6, 10};
  b.classes = {{"no", 6, 5, 4}, {"yes", 4, 5, 3}};
  b.confusion = {{4, 2}, {1, 3}};
  b.macro_f1 = 0.7;
  b.auc = 0.75;
  b.factors = {{"length", {{"1 to 7", 6, 4}, {"8", 4, 3}}}};
  b.set_correct({true, false, true, true, false, false, false, true, true, true});
  return r;
}

std::vector<AnalysisRecord> all_records() {
  return {span_record(),       generalization_record(), convergence_record(),
          embeddings_record(), rollout_record(),        controls_record(),
          transfer_record(),   breakdown_record(),      reach_record()};
}

TEST(AnalysisRecord, RoundTripsEveryKind) {
  for (const AnalysisRecord& record : all_records()) {
    const std::string text = to_json(record);
    EXPECT_EQ(to_json(parse_analysis(text, "a.json")), text) << record.kind;
  }
  const SpanResult span = *parse_analysis(to_json(span_record()), "a").span;
  EXPECT_EQ(span.tokens.mean, 1.0 / 3);
  EXPECT_EQ(span.tokens.heads.at(1).at(0), 0.7);
  const auto convergence = *parse_analysis(to_json(convergence_record()), "a").convergence;
  EXPECT_EQ(convergence.thresholds.at(0).step, 350);
  EXPECT_FALSE(convergence.thresholds.at(1).step.has_value());
  EXPECT_EQ(parse_analysis(to_json(rollout_record()), "a").rollout->examples.at(0).top.at(0).text,
            "\n");
}

// Were a field forgotten in a list, a full record would be written with its default somewhere.
void expect_no_default(const Json& full, const Json& empty, const std::string& path) {
  for (const auto& [key, value] : empty.items()) {
    ASSERT_TRUE(full.contains(key)) << path << key;
    if (value.is_object() && !value.empty()) {
      if (key != "provenance") expect_no_default(full.at(key), value, path + key + ".");
    } else if (key != "schema") {
      EXPECT_NE(full.at(key), value) << path << key;
    }
  }
}

TEST(AnalysisRecord, WritesNoFieldOfAFullRecordWithItsDefault) {
  AnalysisRecord full = span_record(), empty;
  full.generalization = generalization_record().generalization;
  full.convergence = convergence_record().convergence;
  full.embeddings = embeddings_record().embeddings;
  full.rollout = rollout_record().rollout;
  full.controls = controls_record().controls;
  full.transfer = transfer_record().transfer;
  full.breakdown = breakdown_record().breakdown;
  full.reach = reach_record().reach;
  empty.span.emplace();
  empty.generalization.emplace();
  empty.convergence.emplace();
  empty.embeddings.emplace();
  empty.rollout.emplace();
  empty.controls.emplace();
  empty.transfer.emplace();
  empty.breakdown.emplace();
  empty.reach.emplace();
  expect_no_default(parse_json(to_json(full), "full"), parse_json(to_json(empty), "empty"), "");
}

template <typename Change>
std::string error_with(AnalysisRecord record, const Change& change) {
  change(record);
  return error_of([&] { parse_analysis(to_json(record), "a.json"); });
}

using Record = AnalysisRecord&;

TEST(AnalysisRecord, RefusesWhatNoAnalysisCanSay) {
  EXPECT_THAT(error_with(span_record(), [](Record r) { r.schema = 2; }), HasSubstr("schema 2"));
  EXPECT_THAT(error_with(span_record(), [](Record r) { r.kind = "spam"; }), HasSubstr("spam"));
  EXPECT_THAT(error_with(span_record(), [](Record r) { r.span.reset(); }),
              HasSubstr("without one"));
  EXPECT_THAT(error_with(span_record(), [](Record r) { r.rollout.emplace(); }),
              HasSubstr("a rollout in a record of kind 'span'"));
  EXPECT_THAT(error_with(controls_record(), [](Record r) { r.controls->scores.clear(); }),
              HasSubstr("no scores"));
}

TEST(AnalysisRecord, KeepsOneBitForEachExample) {
  const BreakdownResult b = *breakdown_record().breakdown;
  EXPECT_EQ(b.correct, "b1c0");
  EXPECT_EQ(b.correct_bits(),
            (std::vector<bool>{true, false, true, true, false, false, false, true, true, true}));
  EXPECT_EQ(b.classes[0].recall(), 4.0 / 6);
  EXPECT_EQ(b.classes[0].precision(), 4.0 / 5);
  EXPECT_FALSE(BreakdownClass{}.recall());
  EXPECT_THAT(error_with(breakdown_record(), [](Record r) { r.breakdown->correct = "b1"; }),
              HasSubstr("without a bit for each example"));
  EXPECT_THAT(error_with(breakdown_record(), [](Record r) { r.breakdown->correct = "B1C0"; }),
              HasSubstr("without a bit for each example"));
  EXPECT_THAT(error_with(breakdown_record(),
                         [](Record r) {
                           r.breakdown->score.num_examples = -3;
                           r.breakdown->correct = "";
                         }),
              HasSubstr("without a bit for each example"));
}

TEST(AnalysisRecord, RefusesFilesOutsideItsFolder) {
  for (const char* name : {"../x.png", "/etc/passwd", "..", "", "a/b.png"}) {
    EXPECT_THAT(
        error_with(rollout_record(), [&](Record r) { r.rollout->examples[0].picture = name; }),
        HasSubstr("a name without a folder"))
        << name;
  }
}

TEST(AnalysisRecord, NamesTheFieldThatIsWrong) {
  const auto error_of_text = [](const std::string& from, const std::string& to) {
    Json json = to_json_object(span_record());
    json.erase("record_hash");
    std::string text = json_text(json);
    const size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
    return error_of([&] { parse_analysis(text, "a.json"); });
  };
  EXPECT_THAT(error_of_text("0.4", "true"),
              HasSubstr("'span.tokens.heads[0][1]' is true or false"));
  EXPECT_THAT(error_of_text("\"split\"", "\"spilt\""), HasSubstr("'split' is missing"));
  EXPECT_THAT(error_of_text("\"mean_length\"", "\"x\": 1, \"mean_length\""),
              HasSubstr("unknown field 'span.x'"));
}

TEST(AnalysisRecord, RefusesAChangedRecordByItsHash) {
  Json json = to_json_object(span_record());
  json["step"] = 17;
  EXPECT_THAT(error_of([&] { parse_analysis(json_text(json), "a.json"); }),
              HasSubstr("a.json: was changed after it was written"));
}

TEST(AnalysisRecord, IsReadBackFromItsFile) {
  const ScratchFolder folder;
  const std::string path = folder.file("span.json");
  write_analysis(span_record(), path);
  EXPECT_EQ(to_json(read_analysis(path)), to_json(span_record()));
}

}  // namespace
}  // namespace lra
