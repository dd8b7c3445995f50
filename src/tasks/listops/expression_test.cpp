#include "tasks/listops/expression.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/rng.h"

namespace lra::tasks {
namespace {

std::vector<uint8_t> parse(const std::string& text) {
  std::vector<uint8_t> symbols;
  const ListOpsResult result = parse_listops(text, symbols);
  EXPECT_TRUE(result.ok()) << text << ": " << result.problem;
  return symbols;
}

int value_of(const std::string& text) { return evaluate_listops(parse(text)).value; }

std::string problem_of(const std::string& text, const ArityLimits& limits = {}) {
  std::vector<uint8_t> symbols;
  const ListOpsResult parsed = parse_listops(text, symbols);
  const ListOpsResult result = parsed.ok() ? evaluate_listops(symbols, limits) : parsed;
  return result.ok() ? "none" : result.problem;
}

TEST(ListOpsExpression, OperatorsHaveTheirPublishedMeaning) {
  EXPECT_EQ(value_of("[MIN 4 2 7 ]"), 2);
  EXPECT_EQ(value_of("[MAX 4 2 7 ]"), 7);
  EXPECT_EQ(value_of("[SM 9 9 5 ]"), 3);
  EXPECT_EQ(value_of("[FIRST 8 5 3 ]"), 8);
  EXPECT_EQ(value_of("[LAST 8 5 3 ]"), 3);
  EXPECT_EQ(value_of("[MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]"), 5);  // the paper's figure 1
  EXPECT_EQ(value_of("7"), 7);
}

TEST(ListOpsExpression, DepthCountsTheOperatorsAroundTheInnermostDigit) {
  EXPECT_EQ(listops_depth(parse("7")), 0);
  EXPECT_EQ(listops_depth(parse("[MAX 1 2 ]")), 1);
  EXPECT_EQ(listops_depth(parse("[MAX [MIN 1 2 ] [MIN 1 [SM 3 4 ] ] ]")), 3);
}

TEST(ListOpsExpression, EvenMediansAreCutDown) {
  EXPECT_EQ(value_of("[MED 1 2 ]"), 1);
  EXPECT_EQ(value_of("[MED 9 0 4 5 ]"), 4);
  EXPECT_EQ(value_of("[MED 3 3 9 0 ]"), 3);
  EXPECT_EQ(value_of("[MED 8 9 9 8 ]"), 8);
  EXPECT_EQ(value_of("[MED 9 1 5 ]"), 5);
}

TEST(ListOpsExpression, CurriedFormIsThatOfTheOfficialFiles) {
  std::string text;
  append_curried_listops(parse("[MAX 1 2 ]"), text);
  EXPECT_EQ(text, "( ( ( [MAX 1 ) 2 ) ] )");
  text.clear();
  append_curried_listops(parse("[MAX 2 [MIN 9 6 ] ]"), text);
  EXPECT_EQ(text, "( ( ( [MAX 2 ) ( ( ( [MIN 9 ) 6 ) ] ) ) ] )");
  EXPECT_EQ(parse(text), parse("[MAX 2 [MIN 9 6 X X"));
}

TEST(ListOpsExpression, WrongExpressionsHaveANamedProblem) {
  EXPECT_EQ(problem_of("[MIN 1 2"), "operator without a closing bracket");
  EXPECT_EQ(problem_of("1 ]"), "something follows the expression");
  EXPECT_EQ(problem_of("]"), "closing bracket without an operator");
  EXPECT_EQ(problem_of("1 2"), "something follows the expression");
  EXPECT_EQ(problem_of("[MIN ]"), "operator with too few arguments");
  EXPECT_EQ(problem_of("[MIN 1 ]", {.least = 2}), "operator with too few arguments");
  EXPECT_EQ(problem_of("[MIN 1 2 3 ]", {.least = 2, .most = 2}),
            "operator with too many arguments");
  EXPECT_EQ(problem_of("[AVG 1 2 ]"), "not a ListOps token");
  EXPECT_EQ(problem_of("[MIN 1 12 ]"), "not a ListOps token");
  EXPECT_EQ(problem_of(""), "empty expression");
  EXPECT_EQ(problem_of("( )"), "empty expression");
  EXPECT_EQ(problem_of("( ( ( [MAX 1 ) 2 ) ]"), "parentheses do not follow the curried form");
  EXPECT_EQ(problem_of("( [MAX 1 2 ] )"), "parentheses do not follow the curried form");
  EXPECT_EQ(problem_of("( ( [MAX 1 ) ] ) ] )"), "unbalanced bracket");
  EXPECT_EQ(evaluate_listops(std::vector<uint8_t>{0}).ok(), false);
  EXPECT_EQ(evaluate_listops(std::vector<uint8_t>{16}).ok(), false);
  EXPECT_EQ(evaluate_listops(std::vector<uint8_t>{255}).ok(), false);
}

TEST(ListOpsExpression, RandomBytesNeverCrash) {
  RandomStream random(7);
  const std::string alphabet = "[]()XMINAED 0123456789\t";
  int64_t num_good = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> symbols(random.below(12));
    for (uint8_t& symbol : symbols) symbol = static_cast<uint8_t>(random.below(20));
    const ListOpsResult result = evaluate_listops(symbols);
    num_good += result.ok();
    ASSERT_EQ(result.ok(), result.value >= 0);
    std::string text(random.below(24), ' ');
    for (char& c : text) c = alphabet[random.below(static_cast<uint32_t>(alphabet.size()))];
    parse_listops(text, symbols);
  }
  EXPECT_GT(num_good, 0);
}

TEST(ListOpsExpression, VeryDeepExpressionsAreEvaluatedWithoutRecursion) {
  std::vector<uint8_t> symbols(1000000, kListOpsMax);
  symbols.push_back(kListOpsDigit0 + 3);
  symbols.resize(symbols.size() + 1000000, kListOpsClose);
  EXPECT_EQ(evaluate_listops(symbols).value, 3);
}

TEST(ListOpsExpression, RenderedTreeShowsTheValueOfEveryOperator) {
  EXPECT_EQ(render_listops(parse("[MAX 4 3 [MIN 2 3 ] 1 ]")),
            "MAX = 4\n  4 3\n  MIN = 2\n    2 3\n  1\n");
}

// The official files of Nangia and Bowman: 10,000 expressions each, made by other code than ours.
TEST(ListOpsExpression, ReproducesEveryTargetOfTheOriginalFiles) {
  const char* root = std::getenv("LRA_TEST_DATA");
  if (!root) GTEST_SKIP() << "LRA_TEST_DATA is not set";
  for (const char* name : {"nangia_bowman_test_d8.tsv", "nangia_bowman_test_d14.tsv"}) {
    std::ifstream file(std::string(root) + "/" + name);
    std::string line;
    int64_t num_lines = 0;
    std::vector<uint8_t> symbols;
    while (std::getline(file, line)) {
      ++num_lines;
      ASSERT_EQ(line.at(1), '\t');
      ASSERT_TRUE(parse_listops(line.substr(2), symbols).ok()) << name << ":" << num_lines;
      ASSERT_EQ(evaluate_listops(symbols).value, line[0] - '0') << name << ":" << num_lines;
      std::string text;
      append_curried_listops(symbols, text);
      ASSERT_EQ(text, line.substr(2)) << name << ":" << num_lines;
    }
    EXPECT_EQ(num_lines, 10000);
  }
}

}  // namespace
}  // namespace lra::tasks
