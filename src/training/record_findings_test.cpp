#include "training/record_findings.h"

#include <gmock/gmock.h>

#include "io/atomic_file.h"
#include "training/new_record.h"
#include "training/test_trainer.h"

namespace lra::training {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordFindings : public TinyTraining {
 protected:
  // Findings about the record of a run after a change of it.
  std::vector<std::string> found(const std::function<void(RunRecord&)>& change) {
    if (!record_) record_ = run_here({}, "run");
    RunRecord changed = *record_;
    change(changed);
    return check_settings(changed);
  }
  // A run of this program on this machine.
  RunRecord run_here(const std::vector<std::string>& sets, const std::string& name) const {
    TrainOptions options;
    options.provenance = make_provenance({});
    return run_with(options, tiny_run(sets), name);
  }
  std::optional<RunRecord> record_;
};

TEST_F(RecordFindings, AreNoneForARun) {
  EXPECT_THAT(found([](RunRecord&) {}), IsEmpty());
  const RunRecord slow = run_here({"train.warmup_steps=100"}, "slow");
  ASSERT_TRUE(slow.warnings.has_value());
  EXPECT_THAT(record_findings(slow, folder("slow").record()), IsEmpty());
}

TEST_F(RecordFindings, NameWhatTheSettingsDoNotGive) {
  EXPECT_THAT(found([](RunRecord& r) { r.division = "apples-to-apples"; }),
              ElementsAre("division is apples-to-apples; expected free-for-all"));
  EXPECT_THAT(found([](RunRecord& r) { r.division_reason = "settings of the small preset"; }),
              ElementsAre(HasSubstr("division_reason is settings of the small preset")));
  EXPECT_THAT(found([](RunRecord& r) { r.published_setting = true; }),
              ElementsAre("published_setting is true; expected false"));
  EXPECT_THAT(found([](RunRecord& r) { r.num_parameters = 17; }),
              ElementsAre(HasSubstr("num_parameters is 17")));
  EXPECT_THAT(found([](RunRecord& r) { r.base_parameters = 17; }),
              ElementsAre(HasSubstr("base_parameters is 17")));
  EXPECT_THAT(found([](RunRecord& r) { r.validation = "test"; }),
              ElementsAre("validation is test; expected own"));
  EXPECT_THAT(found([](RunRecord& r) { r.planned_steps = 4; }),
              ElementsAre("planned_steps is 4; expected 12"));
  EXPECT_THAT(found([](RunRecord& r) { r.preset_steps = 12; }),
              ElementsAre("preset_steps is 12; expected 5000"));
  EXPECT_THAT(found([](RunRecord& r) { r.tokens = 1000000; }),
              ElementsAre(HasSubstr("96 examples have at most")));
}

TEST_F(RecordFindings, NameASourceOfTheDataThatCannotBe) {
  EXPECT_THAT(found([](RunRecord& r) { r.data_source = "found"; }),
              ElementsAre("data_source is 'found'"));
  EXPECT_THAT(found([](RunRecord& r) { r.data_examples->train = 20; }),
              Contains(HasSubstr("data_source is generated, and there is data of 20 training")));
}

TEST_F(RecordFindings, NameWarningsThatWereTakenOut) {
  RunRecord slow = run_here({"train.warmup_steps=100"}, "slow");
  slow.warnings.reset();
  EXPECT_THAT(check_settings(slow),
              ElementsAre(HasSubstr("it lacks the warning: the learning rate never leaves")));
  EXPECT_THAT(found([](RunRecord& r) {
                r.data_source = "imported";
                r.data_examples->test = 29;
              }),
              Contains(HasSubstr("it lacks the warning: data in doubt: imported data of 29 test")));
  EXPECT_THAT(found([](RunRecord& r) { r.baselines["root operator"] = 29.0 / 30; }),
              ElementsAre(HasSubstr(
                  "it lacks the warning: data in doubt: the baseline 'root operator' alone")));
}

// The words of another version may be others; its figures may not.
TEST_F(RecordFindings, LeaveTheWordsOfOtherVersionsAlone) {
  EXPECT_THAT(found([](RunRecord& r) {
                r.provenance.lra_version = "0.0.1";
                r.division_reason = "as it was put then";
              }),
              IsEmpty());
  EXPECT_THAT(found([](RunRecord& r) {
                r.provenance.lra_version = "0.0.1";
                r.division = "apples-to-apples";
              }),
              testing::SizeIs(1));
}

TEST_F(RecordFindings, NameSettingsOfNoRun) {
  EXPECT_THAT(found([](RunRecord& r) {
                r.config.table("train").set("steps", ConfigValue{std::string("many"), ""});
              }),
              ElementsAre(HasSubstr("its settings are not those of a run of this program")));
  EXPECT_THAT(found([](RunRecord& r) { r.model = "some.package:Layer"; }),
              Contains(HasSubstr("the record does not name its source")));
}

// Its preset is not that of this program, so neither its division nor its reason follows from it.
TEST_F(RecordFindings, HoldARunOfEditedPresetsToWhatItSaysOfThem) {
  const auto mark = [](RunRecord& r) {
    r.warnings = {std::string(kEditedPresets) + "configs/tasks/listops.toml is another"};
    r.division_reason = "configs/tasks/listops.toml is another";
  };
  EXPECT_THAT(found(mark), IsEmpty());
  EXPECT_THAT(found([&](RunRecord& r) {
                mark(r);
                r.division = "apples-to-apples";
                r.published_setting = true;
              }),
              testing::SizeIs(2));
}

TEST_F(RecordFindings, NameAnEditedConfigBesideTheRecord) {
  const RunRecord record = run_here({}, "run");
  EXPECT_THAT(record_findings(record, folder("run").record()), IsEmpty());
  std::string toml = read_file(folder("run").config(), 1 << 20);
  toml.replace(toml.find("steps = 12"), 10, "steps = 13");
  write_file_atomically(folder("run").config(), toml);
  EXPECT_THAT(record_findings(record, folder("run").record()),
              ElementsAre(HasSubstr("config.toml next to it differs from its settings")));
}

}  // namespace
}  // namespace lra::training
