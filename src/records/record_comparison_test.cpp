#include "records/record_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace lra {
namespace {

RunRecord finished_run() {
  RunRecord record;
  record.status = RunStatus::kDone;
  record.steps = 20;
  record.examples = 160;
  record.tokens = 4000;
  record.computed_tokens = 4100;
  record.weights_hash = "0123";
  record.val_curve = {{10, 0.7, 0.5, 64}, {20, 0.6, 0.55, 64}};
  record.val = record.val_curve[1];
  record.best_val = record.val_curve[1];
  record.test = Evaluation{20, 0.65, 0.52, 100};
  record.provenance.compiler = "g++ 12.2.0";
  record.provenance.threads = 2;
  record.provenance.kernels = {{"gemm", "avx512"}};
  return record;
}

std::vector<std::string> different(const std::vector<Compared>& rows) {
  std::vector<std::string> names;
  for (const Compared& row : rows) {
    if (!row.is_equal()) names.push_back(row.what);
  }
  return names;
}

TEST(RecordComparison, FindsNothingBetweenTwoReadingsOfOneRecord) {
  const RunRecord record = finished_run();
  const RunRecord read = parse_record(to_json(record), "record.json");
  EXPECT_EQ(different(compare_results(record, read)), std::vector<std::string>());
  EXPECT_EQ(different(compare_circumstances(record.provenance, read.provenance)),
            std::vector<std::string>());
}

TEST(RecordComparison, NamesEachResultThatDiffersInItsLastBit) {
  const auto next = [](double x) { return std::nextafter(x, 2.0); };
  const std::vector<std::pair<std::string, std::function<void(RunRecord&)>>> changes = {
      {"status", [](RunRecord& r) { r.status = RunStatus::kDiverged; }},
      {"steps", [](RunRecord& r) { r.steps = 19; }},
      {"examples", [](RunRecord& r) { r.examples = 161; }},
      {"tokens", [](RunRecord& r) { r.tokens = 4001; }},
      {"computed tokens", [](RunRecord& r) { r.computed_tokens.reset(); }},
      {"weights", [](RunRecord& r) { r.weights_hash = "0124"; }},
      {"validation at step 10", [&](RunRecord& r) { r.val_curve[0].loss = next(0.7); }},
      {"validation at step 20", [&](RunRecord& r) { r.val_curve[1].accuracy = next(0.55); }},
      {"last validation", [&](RunRecord& r) { r.val->loss = next(0.6); }},
      {"best validation", [&](RunRecord& r) { r.best_val.reset(); }},
      {"test", [&](RunRecord& r) { r.test->loss = std::nan(""); }}};
  for (const auto& [name, change] : changes) {
    RunRecord now = finished_run();
    change(now);
    EXPECT_EQ(different(compare_results(finished_run(), now)), std::vector<std::string>{name});
  }
}

TEST(RecordComparison, MissesNoValidationThatOnlyOneRunHas) {
  RunRecord longer = finished_run();
  longer.val_curve.push_back({30, 0.5, 0.6, 64});
  const std::vector<std::string> expected = {"validation at step 30"};
  EXPECT_EQ(different(compare_results(longer, finished_run())), expected);
  EXPECT_EQ(different(compare_results(finished_run(), longer)), expected);
}

TEST(RecordComparison, OfBeginningsEndsWithTheStepAndNamesTheFirstDifference) {
  const RunRecord record = finished_run();
  const auto log = [](const std::string& loss, const std::string& speed) {
    return R"({"step":5,"kind":"train","loss":0.75,"tokens_per_s":)" + speed + "}\n" +
           R"({"step":10,"kind":"train","loss":)" + loss + R"(,"tokens_per_s":1})" + "\n" +
           R"({"step":10,"kind":"val","loss":0.7,"accuracy":0.5,"examples":64})" + "\n" +
           R"({"step":15,"kind":"train","loss":)" + speed + "}\ncut";
  };
  const auto compare = [&](const RunRecord& now, const std::string& now_log, int64_t step) {
    return compare_beginnings(record, now, log("0.5", "7"), now_log, step);
  };
  EXPECT_TRUE(compare(record, log("0.5", "8"), 4).empty());
  const auto equal = compare(record, log("0.5", "8"), 12);
  EXPECT_EQ(different(equal), std::vector<std::string>());
  ASSERT_EQ(equal.size(), 2u);
  EXPECT_EQ(equal[0].what, "2 logged training steps");
  EXPECT_EQ(equal[0].recorded, "step 10, loss 0.5");
  EXPECT_EQ(equal[1].what, "validation at step 10");
  const auto other_loss = compare(record, log("0.50000000000000001", "7"), 12);
  EXPECT_EQ(different(other_loss), std::vector<std::string>()) << "the same number";
  const auto next_loss = compare(record, log("0.5000000000000001", "7"), 12);
  ASSERT_EQ(different(next_loss), std::vector<std::string>{"2 logged training steps"});
  EXPECT_EQ(next_loss[0].now, "step 10, loss 0.5000000000000001");
  EXPECT_EQ(compare(record, "", 12)[0].now, "none");
  RunRecord later = record;
  later.val_curve[1].loss = 0;
  EXPECT_EQ(different(compare(later, log("0.5", "7"), 12)), std::vector<std::string>());
  EXPECT_EQ(different(compare(later, log("0.5", "7"), 20)),
            (std::vector<std::string>{"validation at step 20"}));
}

TEST(RecordComparison, NamesWhatWasDifferentAroundTheRun) {
  Provenance now = finished_run().provenance;
  now.threads = 4;
  now.git_dirty = "ab";
  now.kernels = {{"gemm", "ref"}, {"linear", "onednn"}};
  EXPECT_EQ(different(compare_circumstances(finished_run().provenance, now)),
            (std::vector<std::string>{"revision", "threads", "kernel gemm", "kernel linear"}));
}

}  // namespace
}  // namespace lra
