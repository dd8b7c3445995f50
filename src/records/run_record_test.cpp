#include "records/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/scratch_folder.h"
#include "io/json.h"
#include "io/toml.h"

namespace lra {
namespace {

using testing::HasSubstr;

// A record whose every field differs from its default and from the others.
RunRecord full_record() {
  RunRecord r;
  r.kind = "bench";
  r.status = RunStatus::kDiverged;
  r.failure = "loss is NaN at step 7";
  r.task = "text";
  r.task_title = "Text \"quoted\" größe";
  r.task_version = 3;
  r.model = "linformer";
  r.model_title = "Linformer";
  r.preset = "paper";
  r.seed = UINT64_MAX;
  r.validation = "heldout";
  r.checkpoint = "best";
  r.data_source = "imported";
  r.data_hash = "d1";
  r.config_hash = "c1";
  r.weights_hash = "w1";
  r.fingerprint = "f1";
  r.num_parameters = 123;
  r.base_parameters = 456;
  r.division = "free-for-all";
  r.division_reason = "too many parameters";
  r.steps = 7;
  r.planned_steps = 20000;
  r.published_setting = true;
  r.preset_steps = 30000;
  r.test_split_examples = 25000;
  r.examples = 224;
  r.tokens = 224000;
  r.computed_tokens = 230000;
  r.train_seconds = 1.0 / 3;
  r.total_seconds = 2.5;
  r.train_tokens_per_s = 672000;
  r.train_examples_per_s = 672;
  r.peak_resident_bytes = int64_t{5} << 33;
  r.warnings = {"a damaged checkpoint", "a \"schedule\""};
  r.data_checks = {{"copies", CheckLevel::kWarning, "test", "3 examples are also in train", true},
                   {"remarks", CheckLevel::kNote, "", "classes are uneven", false}};
  r.tuning = {15, 4500, "mean validation accuracy of 3 seeds", {"train.learning_rate"}};
  r.train = Evaluation{1, 0.1, 0.2, 3};
  r.val = Evaluation{4, 0.4, 0.5, 6};
  r.test = Evaluation{7, std::nan(""), 0.8, 9};
  r.best_val = Evaluation{10, INFINITY, 0.9, 11};
  r.val_curve = {{1, 0.7, 0.5, 10}, {2, 0.6, 0.6, 10}};
  r.measurements = {{"train", "bf16", 1024, 32, 1.5, 49152, 1.25, 1.75, 5, {}, 99, 88, 77, 66}};
  r.baselines = {{"majority", 0.173}, {"random", 0.1}};
  r.config = parse_toml(
      "steps = 5\nrate = 1.0\nname = \"x\"\nflag = true\nlist = [1, 2.5, \"y\"]\nclip = inf\n"
      "[model]\nwidth = 64\n[model.mixer]\nrank = 1\n",
      "a");
  r.provenance = {"0.1.0",
                  "abc",
                  "def",
                  "g++ 12",
                  "2.13.0",
                  "AMD",
                  "avx2",
                  "cpu",
                  2,
                  4,
                  {{"attention", "avx512"}},
                  "Linux",
                  "t0",
                  "t1",
                  {"lra", "train"}};
  return r;
}

TEST(RunRecord, RoundTripsEveryField) {
  const std::string text = to_json(full_record());
  const RunRecord back = parse_record(text, "record.json");
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(back.status, RunStatus::kDiverged);
  EXPECT_EQ(back.seed, UINT64_MAX);
  EXPECT_EQ(back.train_seconds, 1.0 / 3);
  EXPECT_TRUE(std::isnan(back.test->loss));
  EXPECT_EQ(back.best_val->loss, INFINITY);
  EXPECT_EQ(back.preset_steps, 30000);
  EXPECT_EQ(back.test_split_examples, 25000);
  EXPECT_EQ(back.val_curve.at(1).accuracy, 0.6);
  EXPECT_EQ(back.measurements.at(0).fastest_steps_per_s, 1.75);
  EXPECT_EQ(back.baselines.at("majority"), 0.173);
  EXPECT_EQ(back.tuning->tried, 15);
  EXPECT_EQ(back.tuning->varied.at(0), "train.learning_rate");
  EXPECT_EQ(back.provenance.command.at(1), "train");
  EXPECT_EQ(back.provenance.kernels.at("attention"), "avx512");
  EXPECT_EQ(canonical_text(back.config), canonical_text(full_record().config));
}

// Were a field forgotten in the list, the full record would be written with its default somewhere.
TEST(RunRecord, WritesNoFieldOfAFullRecordWithItsDefault) {
  const Json full = parse_json(to_json(full_record()), "full");
  const Json empty = parse_json(to_json(RunRecord{}), "empty");
  for (const auto& [key, value] : empty.items()) {
    if (key == "schema") continue;
    EXPECT_NE(full.at(key), value) << key;
  }
  for (const auto& [key, value] : empty.at("provenance").items()) {
    EXPECT_NE(full.at("provenance").at(key), value) << key;
  }
}

TEST(RunRecord, RoundTripsAnEmptyRecordWithoutOptionalFields) {
  const std::string text = to_json(RunRecord{});
  EXPECT_FALSE(parse_json(text, "a").contains("val"));
  EXPECT_FALSE(parse_json(text, "a").contains("warnings"));
  const RunRecord back = parse_record(text, "record.json");
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(back.schema, kRecordSchema);
  EXPECT_FALSE(back.train.has_value());
  EXPECT_FALSE(back.best_val.has_value());
}

TEST(RunRecord, EveryStatusHasAName) {
  for (const RunStatus status : {RunStatus::kRunning, RunStatus::kDone, RunStatus::kStopped,
                                 RunStatus::kDiverged, RunStatus::kFailed}) {
    RunRecord record;
    record.status = status;
    EXPECT_EQ(parse_record(to_json(record), "a").status, status);
  }
  EXPECT_EQ(to_string(RunStatus::kStopped), "stopped");
}

TEST(RunRecord, IsWrittenToAndReadFromAFile) {
  const ScratchFolder folder;
  write_record(full_record(), folder.file("record.json"));
  EXPECT_EQ(to_json(read_record(folder.file("record.json"))), to_json(full_record()));
  EXPECT_THROW(read_record(folder.file("none.json")), Error);
}

// The message with which a changed record without a hash is refused.
template <typename F>
std::string refusal(const F& change) {
  Json json = parse_json(to_json(full_record()), "full");
  json.erase("record_hash");
  change(json);
  return error_of([&] { parse_record(json_text(json), "r.json"); });
}

TEST(RunRecord, RefusesAChangedRecordByItsHash) {
  const Json json = parse_json(to_json(full_record()), "full");
  const auto error_with = [&](const auto& change) {
    Json changed = json;
    change(changed);
    return error_of([&] { (void)parse_record(json_text(changed), "r.json"); });
  };
  const auto edited =
      HasSubstr("r.json: was changed after it was written: its content does not match record_hash");
  EXPECT_THAT(error_with([](Json& j) { j["test"]["accuracy"] = 0.99; }), edited);
  EXPECT_THAT(error_with([](Json& j) { j["seed"] = 8; }), edited);
  EXPECT_THAT(error_with([](Json& j) { j["config"]["model"]["width"] = 65; }), edited);
  EXPECT_THAT(error_with([](Json& j) { j["record_hash"] = std::string(32, '0'); }), edited);
  EXPECT_THAT(error_with([](Json& j) { j.erase("warnings"); }), edited);
  EXPECT_EQ(error_with([](Json& j) { j = Json(nlohmann::json(j)); }), "")
      << "keys in another order";
  EXPECT_EQ(error_with([](Json& j) {
              j.erase("record_hash");
              j["seed"] = 8;
            }),
            "")
      << "records of earlier programs have none";
}

TEST(RunRecord, RefusesUnknownSchemasFirst) {
  EXPECT_THAT(error_of([] { parse_record("{\"schema\": 2, \"provenance\": {}}", "r.json"); }),
              HasSubstr("r.json: a run record of schema 2; expected schema 1"));
  EXPECT_THAT(error_of([] { parse_record("{\"schema\": 2, \"splits\": []}", "r.json"); }),
              HasSubstr("r.json: is not a run record; expected record.json"));
  EXPECT_THAT(error_of([] { parse_record("{}", "r.json"); }), HasSubstr("'schema' is missing"));
}

TEST(RunRecord, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(refusal([](Json& j) { j.erase("task"); }), HasSubstr("'task' is missing"));
  EXPECT_THAT(refusal([](Json& j) { j["steps"] = "x"; }), HasSubstr("'steps' is a string"));
  EXPECT_THAT(refusal([](Json& j) { j["seed"] = -1; }), HasSubstr("'seed' is -1"));
  EXPECT_THAT(refusal([](Json& j) { j["status"] = "great"; }), HasSubstr("'status' is 'great'"));
  EXPECT_THAT(refusal([](Json& j) { j["stpes"] = 1; }), HasSubstr("did you mean 'steps'"));
  EXPECT_THAT(refusal([](Json& j) { j["val_curve"][1]["loss"] = true; }),
              HasSubstr("'val_curve[1].loss' is true or false"));
  EXPECT_THAT(refusal([](Json& j) { j["val_curve"] = 3; }), HasSubstr("expected an array"));
  EXPECT_THAT(refusal([](Json& j) { j["test"].erase("loss"); }), HasSubstr("'test.loss'"));
  EXPECT_THAT(refusal([](Json& j) { j["config"] = 1; }), HasSubstr("'config' is an integer"));
  EXPECT_THAT(refusal([](Json& j) { j["baselines"]["majority"] = "x"; }),
              HasSubstr("'baselines.majority'"));
  EXPECT_THAT(refusal([](Json& j) { j["provenance"]["command"] = Json::array({1}); }),
              HasSubstr("'provenance.command[0]'"));
  EXPECT_THAT(refusal([](Json& j) { j["provenance"]["kernels"]["x"] = 1; }),
              HasSubstr("'provenance.kernels.x'"));
}

TEST(RunRecord, RefusesNumbersThatNoRunCanHave) {
  const auto error_with = [](auto change) {
    RunRecord record = full_record();
    change(record);
    return error_of([&] { (void)parse_record(to_json(record), "record.json"); });
  };
  EXPECT_EQ(error_with([](RunRecord&) {}), "");
  EXPECT_THAT(error_with([](RunRecord& r) { r.test->accuracy = 5; }), HasSubstr("0 to 1"));
  EXPECT_THAT(error_with([](RunRecord& r) { r.val_curve[0].accuracy = -1; }), HasSubstr("0 to 1"));
  EXPECT_THAT(error_with([](RunRecord& r) { r.baselines["majority"] = 17.3; }),
              HasSubstr("0 to 1"));
  EXPECT_THAT(error_with([](RunRecord& r) { r.kind = "x"; }), HasSubstr("kind 'x'"));
}

TEST(RunRecord, RefusesConfigValuesThatTomlDoesNotHave) {
  EXPECT_NE(refusal([](Json& j) { j["config"]["model"]["width"] = nullptr; }), "");
  EXPECT_NE(refusal([](Json& j) { j["config"]["steps"] = UINT64_MAX; }), "");
}

TEST(RunRecord, SurvivesHostileText) {
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string(100000, '['),
        std::string("{\"schema\":1e400}"), std::string("{\"schema\":1.5}"),
        std::string("\0\0\0", 3), std::string("{\"schema\":1,\"schema\":1}")}) {
    EXPECT_THROW(parse_record(text, "r.json"), Error) << text.substr(0, 20);
  }
  const std::string good = to_json(full_record());
  for (size_t size = 0; size + 1 < good.size(); size += 7) {
    EXPECT_THROW(parse_record(good.substr(0, size), "r.json"), Error) << size;
  }
  std::string deep = good;
  deep.replace(deep.find("\"width\": 64"), 11, "\"width\": " + std::string(5000, '['));
  EXPECT_THROW(parse_record(deep, "r.json"), Error);
}

TEST(RunRecord, PathXChanceEndsAtFiftyOneOnTheOfficialTestSet) {
  EXPECT_NEAR(two_class_chance_limit(20000), 51.06, 0.005);
}

TEST(RunRecord, AMeasurementComesBackAndKnowsItsShareOfTheMatrixProduct) {
  Measurement m{.mode = "train", .dtype = "fp32", .length = 1024, .batch = 4, .steps_per_s = 2};
  m.model_flops = 300;
  m.gemm_flops_per_s = 1000.0;
  m.pipeline_steps_per_s = 1.5;
  m.warning = "the windows differ";
  m.parts = 4;
  const Measurement again = parse_measurement(to_json(m), "here");
  EXPECT_EQ(again.mode, "train");
  EXPECT_EQ(again.model_flops, 300);
  EXPECT_EQ(again.pipeline_steps_per_s, 1.5);
  EXPECT_EQ(again.warning, "the windows differ");
  EXPECT_EQ(again.parts, 4);
  EXPECT_DOUBLE_EQ(flops_utilisation(again), 0.6);
  EXPECT_THROW(parse_measurement(R"({"mode": "train"})", "here"), Error);
}

}  // namespace
}  // namespace lra
