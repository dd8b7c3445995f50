
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

}  // namespace
}  // namespace lra::report
