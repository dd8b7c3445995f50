
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "io/json.h"
#include "records/test_records.h"
#include "report/report.h"

namespace lra::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Card, SaysResultProtocolAndProvenance) {
  const std::string card = results_card(finished_run("text", "performer", 65.25));
  EXPECT_THAT(card, ::testing::StartsWith("---\ntags:\n"));
  EXPECT_THAT(card, HasSubstr("      value: 65.2500\n---\n"));
  EXPECT_THAT(card, HasSubstr("| test | 65.25 %, loss 1.5000, 2,000 examples"));
  EXPECT_THAT(card, HasSubstr("| division | apples-to-apples |"));
  EXPECT_THAT(card, HasSubstr("0123456789"));
}

TEST(Card, ForeignTextsNeitherEndTheHeadNorTheTable) {
  RunRecord run = finished_run("text", "performer", 65);
  run.model_title = "name\n---\n# heading | <b> \x1b[2J";
  run.provenance.command = {"a | b\n\n# c"};
  run.config.set("key", ConfigValue{std::string("    \n</pre>\x1b"), ""});
  const std::string card = results_card(run);
  EXPECT_EQ(card.find("\n---\n"), card.rfind("\n---\n")) << "one end of the head";
  EXPECT_THAT(card, Not(HasSubstr("\n# heading")));
  EXPECT_THAT(card, Not(HasSubstr("\n# c")));
  EXPECT_THAT(card, Not(HasSubstr("<b>")));
  EXPECT_THAT(card, Not(HasSubstr("\x1b")));
}

TEST(Card, ItsNameIsAPlainFileName) {
  RunRecord run = finished_run("../text", "a/b c", 65, 3);
  run.fingerprint = "0123456789abcdef";
  EXPECT_EQ(card_name(run), "a-b-c----text-seed3-01234567.md");
}

TEST(LmEval, HasTheShapeOfTheHarness) {
  const Json json = parse_json(
      render({finished_run("text", "performer", 64, 0), finished_run("text", "performer", 66, 1)},
             Format::kLmEval),
      "lm-eval");
  EXPECT_DOUBLE_EQ(json["results"]["lra_text"]["acc,none"].get<double>(), 0.65);
  EXPECT_NEAR(json["results"]["lra_text"]["acc_stderr,none"].get<double>(), 0.01, 1e-12);
  EXPECT_EQ(json["n-samples"]["lra_text"]["effective"], 2000);
  EXPECT_EQ(json["versions"]["lra_text"], 1);
  EXPECT_EQ(json["model_name"], "performer");
}

TEST(LmEval, OneSeedHasTheErrorOfItsExamples) {
  const Json json =
      parse_json(render({finished_run("text", "performer", 50)}, Format::kLmEval), "lm-eval");
  EXPECT_NEAR(json["results"]["lra_text"]["acc_stderr,none"].get<double>(), std::sqrt(0.25 / 2000),
              1e-12);
}

TEST(LmEval, SeveralModelsAreRefused) {
  EXPECT_THROW(render({finished_run("text", "performer", 64), finished_run("text", "local", 60)},
                      Format::kLmEval),
               Error);
}

}  // namespace
}  // namespace lra::report
