#include "tasks/listops/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <set>

#include "base/parallel.h"
#include "base/stop_flag.h"
#include "data/test_fixtures.h"
#include "tasks/listops/expression.h"

namespace lra::tasks {
namespace {

std::vector<ListOpsExample> generate(const ListOpsSettings& settings, uint64_t seed,
                                     const std::array<int64_t, 3>& sizes,
                                     std::vector<std::string>* notes = nullptr) {
  std::vector<ListOpsExample> all;
  QuietProgress progress;
  const auto found = generate_listops(
      settings, seed, sizes,
      [&](std::span<const ListOpsExample> part) {
        all.insert(all.end(), part.begin(), part.end());
      },
      progress);
  if (notes) *notes = found;
  return all;
}

// The 20,000 samples whose figures the next tests compare with those of another simulation of the
// released generator (49,861 accepted trees). Bounds are 4.5 standard deviations of the difference.
const std::vector<ListOpsExample>& many_samples() {
  static const std::vector<ListOpsExample> samples = generate({}, 2021, {20000, 0, 0});
  return samples;
}
constexpr double kOurs = 20000, kTheirs = 49861;

double share_bound(double share) {
  return 4.5 * std::sqrt(share * (1 - share) * (1 / kOurs + 1 / kTheirs)) + 0.0005;
}

TEST(ListOpsGenerator, LengthsAreThoseOfTheReleasedGenerator) {
  std::vector<double> lengths;
  double sum = 0, squares = 0;
  for (const ListOpsExample& sample : many_samples()) {
    const auto length = static_cast<double>(sample.symbols.size());
    lengths.push_back(length);
    sum += length;
    squares += length * length;
  }
  std::sort(lengths.begin(), lengths.end());
  EXPECT_GE(lengths.front(), 501);
  EXPECT_LE(lengths.back(), 1999);
  const double mean = sum / kOurs;
  const double deviation = std::sqrt(squares / kOurs - mean * mean);
  const double error = deviation * std::sqrt(1 / kOurs + 1 / kTheirs);
  EXPECT_NEAR(mean, 1036, 4.5 * error + 0.5);
  EXPECT_NEAR(lengths[lengths.size() / 2], 953, 4.5 * 1.6 * error + 0.5);
}

TEST(ListOpsGenerator, LabelsAreThoseOfTheReleasedGenerator) {
  const std::array<double, 10> expected = {0.173, 0.090, 0.077, 0.082, 0.089,
                                           0.086, 0.078, 0.070, 0.088, 0.167};
  std::array<double, 10> counts{};
  for (const ListOpsExample& sample : many_samples()) ++counts[static_cast<size_t>(sample.label)];
  for (size_t label = 0; label < 10; ++label) {
    EXPECT_NEAR(counts[label] / kOurs, expected[label], share_bound(expected[label])) << label;
  }
}

TEST(ListOpsGenerator, TheRootOperatorTellsWhatItShould) {
  std::map<int, std::array<double, 10>> counts;
  for (const ListOpsExample& sample : many_samples()) {
    ++counts[sample.symbols[0]][static_cast<size_t>(sample.label)];
  }
  ASSERT_EQ(counts.size(), 4U);
  double num_right = 0;
  for (const auto& [root, labels] : counts) {
    num_right += *std::max_element(labels.begin(), labels.end());
    double total = 0;
    for (const double count : labels) total += count;
    EXPECT_NEAR(total / kOurs, 0.25, 4.5 * std::sqrt(0.1875 / kOurs)) << root;
  }
  EXPECT_NEAR(num_right / kOurs, 0.365, share_bound(0.365));
}

// At depth 2 all arguments are digits, so every probability is known: a lone digit 3/4, an operator
// with n arguments 1/4 * 1/9 for n of 2..10.
TEST(ListOpsGenerator, ShallowTreesHaveTheirExactProbabilities) {
  const ListOpsSettings settings{.min_length = 0, .max_length = 100, .max_depth = 2};
  std::map<size_t, double> lengths;
  std::array<double, 19> symbols_seen{};
  double num_digits = 0, num_operators = 0;
  std::vector<uint8_t> symbols;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    draw_listops(settings, static_cast<uint64_t>(i) * 77, symbols);
    ++lengths[symbols.size()];
    for (const uint8_t symbol : symbols) {
      ++symbols_seen[symbol];
      num_digits += is_listops_digit(symbol);
      num_operators += is_listops_operator(symbol);
    }
  }
  const auto near = [](double count, double share, double total, const std::string& what) {
    EXPECT_NEAR(count / total, share, 4.5 * std::sqrt(share * (1 - share) / total)) << what;
  };
  near(lengths[1], 0.75, kDraws, "lone digit");
  for (size_t n = 2; n <= 10; ++n) near(lengths[n + 2], 0.25 / 9, kDraws, std::to_string(n));
  EXPECT_EQ(lengths.size(), 10U);
  for (int op = kListOpsMin; op <= kListOpsSumMod; ++op) {
    near(symbols_seen[static_cast<size_t>(op)], 0.25, num_operators, "operator");
  }
  for (int digit = 0; digit < 10; ++digit) {
    near(symbols_seen[static_cast<size_t>(kListOpsDigit0 + digit)], 0.1, num_digits, "digit");
  }
}

TEST(ListOpsGenerator, InnerNodesBranchWithProbabilityOneQuarter) {
  // Trees of at most 4 tokens: lone digits 3/4, [op d d] 1/4 * 1/9 * (3/4)^2.
  const ListOpsSettings settings{.min_length = 0, .max_length = 5};
  double num_branched = 0;
  std::vector<uint8_t> symbols;
  constexpr double kDraws = 200000;
  for (int i = 0; i < static_cast<int>(kDraws); ++i) {
    draw_listops(settings, static_cast<uint64_t>(i) + 12345, symbols);
    num_branched += symbols.size() == 4;
  }
  const double odds = 0.25 / 9 * 0.5625 / 0.75, share = odds / (1 + odds);
  EXPECT_NEAR(num_branched / kDraws, share, 4.5 * std::sqrt(share / kDraws));
}

TEST(ListOpsGenerator, NoTreeIsDeeperThanTheLimit) {
  size_t deepest = 0;
  for (const ListOpsExample& sample : many_samples()) {
    size_t depth = 0;
    for (const uint8_t symbol : sample.symbols) {
      if (is_listops_operator(symbol)) deepest = std::max(deepest, ++depth);
      if (symbol == kListOpsClose) --depth;
    }
    ASSERT_TRUE(evaluate_listops(sample.symbols, {.least = 2, .most = 10}).ok());
  }
  EXPECT_EQ(deepest, 9U);  // the tenth level holds digits only
}

TEST(ListOpsGenerator, SamplesDoNotDependOnSizesOrThreads) {
  const int before = num_threads();
  set_num_threads(1);
  const auto few = generate({}, 3, {5, 2, 2});
  set_num_threads(4);
  const auto many = generate({}, 3, {40, 9, 2});
  set_num_threads(before);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(few[i].symbols, many[i].symbols);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(few[5 + i].symbols, many[40 + i].symbols);
  EXPECT_NE(many[0].symbols, many[40].symbols);
  EXPECT_NE(few[0].symbols, generate({}, 4, {1, 0, 0})[0].symbols);
}

TEST(ListOpsGenerator, DuplicatesAreDrawnAgainAndNoted) {
  const ListOpsSettings digits_only{.min_length = 0, .max_length = 2, .max_depth = 1};
  std::vector<std::string> notes;
  const auto all = generate(digits_only, 1, {4, 3, 3}, &notes);
  std::set<std::vector<uint8_t>> different;
  for (const ListOpsExample& example : all) different.insert(example.symbols);
  EXPECT_EQ(different.size(), 10U);
  EXPECT_FALSE(notes.empty());
  EXPECT_NE(notes.back().find("duplicate"), std::string::npos);
  EXPECT_NE(error_of([&] {
              generate(digits_only, 1, {5, 3, 3});
            }).find("duplicate"),
            std::string::npos);
}

TEST(ListOpsGenerator, ImpossibleLengthsAreAnError) {
  const ListOpsSettings settings{.min_length = 500, .max_length = 2000, .max_depth = 2};
  EXPECT_NE(error_of([&] {
              generate(settings, 1, {1, 0, 0});
            }).find("max_depth"),
            std::string::npos);
}

// Depth, arguments and kind of operators are what the settings say, and the place of the inner
// operator is uniform.
TEST(ListOpsGenerator, ASpineHasOneOperatorInTheOther) {
  const ListOpsSettings settings{.min_length = 0,
                                 .max_length = 100,
                                 .max_depth = 6,
                                 .max_args = 4,
                                 .min_args = 4,
                                 .spine = true,
                                 .operators = {kListOpsMed}};
  std::vector<uint8_t> symbols;
  std::array<double, 4> places{};
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    draw_listops(settings, static_cast<uint64_t>(i), symbols);
    ASSERT_EQ(symbols.size(), 5u * (1 + 3 + 1) + 1);
    ASSERT_TRUE(evaluate_listops(symbols, {.least = 4, .most = 4}).ok());
    ASSERT_EQ(listops_depth(symbols), 5);
    ASSERT_EQ(std::ranges::count(symbols, kListOpsMed), 5);
    ++places[static_cast<size_t>(
        std::ranges::find(symbols.begin() + 1, symbols.end(), kListOpsMed) - symbols.begin() - 1)];
  }
  for (const double count : places) EXPECT_NEAR(count / kDraws, 0.25, 0.031) << "4.5 deviations";
}

TEST(ListOpsGenerator, DrawsOnlyTheOperatorsAndArgumentsOfTheSettings) {
  ListOpsSettings settings{.min_length = 20, .max_length = 200, .min_args = 7};
  settings.operators = {kListOpsMin, kListOpsMax};
  for (const ListOpsExample& example : generate(settings, 1, {200, 0, 0})) {
    EXPECT_TRUE(evaluate_listops(example.symbols, {.least = 7, .most = 10}).ok());
    EXPECT_EQ(std::ranges::count(example.symbols, kListOpsMed), 0);
    EXPECT_EQ(std::ranges::count(example.symbols, kListOpsSumMod), 0);
  }
}

TEST(ListOpsGenerator, StopsWhenAskedTo) {
  raise_stop_flag(SIGTERM);
  try {
    generate({}, 1, {10, 0, 0});
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStopped);
  }
  clear_stop_flag();
}

}  // namespace
}  // namespace lra::tasks
