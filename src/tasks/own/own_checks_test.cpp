#include "tasks/own/own_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "base/rng.h"
#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Sizes {
  int train = 40, test = 40, positions = 5, channels = 2;
};

// Doubts about values between -1 and 1 after a change of each.
std::vector<std::string> doubts_about(
    const std::function<float(bool is_test, int64_t number, float value)>& change,
    const Sizes& sizes = {}) {
  const TestFolder root;
  Manifest manifest = imported_manifest("custom");
  manifest.token_bytes = 4 * sizes.channels;
  DatasetWriter writer(root.path("data"), manifest, 0);
  RandomStream random(9);
  int64_t number = 0;
  for (const char* name : {"train", "val", "test"}) {
    writer.begin_split(name);
    const bool is_test = name == std::string("test");
    for (int i = 0; i < (is_test ? sizes.test : sizes.train); ++i) {
      std::vector<uint32_t> words;
      for (int k = 0; k < sizes.positions * sizes.channels; ++k) {
        const float value = static_cast<float>(random.below(2001)) / 1000 - 1;
        words.push_back(std::bit_cast<uint32_t>(change(is_test, number++, value)));
      }
      writer.add(i % 2, std::vector<std::span<const uint32_t>>{words});
    }
  }
  writer.finish();
  CustomConfig config;
  config.input = "values";
  config.channels = sizes.channels;
  config.length = config.shortest = config.longest = sizes.positions;
  return doubts_of_own_data(Dataset::open(root.path("data")), config, {"a", "b"});
}

float unchanged(bool, int64_t, float value) { return value; }

TEST(OwnChecks, LeaveValuesOfOneKindAlone) {
  EXPECT_THAT(doubts_about(unchanged), ElementsAre());
  EXPECT_THAT(doubts_about([](bool, int64_t, float value) { return value > 0 ? 1.0f : 0.0f; }),
              ElementsAre())
      << "two values are no mark and the rest";
}

TEST(OwnChecks, NameAPositionThatGivesTheLabelsOfTheTestAlone) {
  const Sizes sizes{.train = 40, .test = 40, .positions = 5, .channels = 2};
  // Example i has the label i % 2; each has ten numbers, and train and val have forty examples
  // each.
  const auto with_label = [](bool in_train) {
    return [in_train](bool is_test, int64_t n, float value) {
      const bool is_label = n % 10 == 7 && (is_test || in_train);
      return is_label ? static_cast<float>(n / 10 % 2) : value;
    };
  };
  EXPECT_THAT(doubts_about(with_label(false), sizes),
              testing::Contains("position 3 of test gives the label of every example, and that of "
                                "train does not: is it the column of the labels?"));
  EXPECT_THAT(doubts_about(with_label(true), sizes),
              testing::Not(testing::Contains(StartsWith("position 3"))));
}

TEST(OwnChecks, NameAChannelThatNeverVaries) {
  const auto doubt = "all values in channel 0 are 5.5: was its sensor off, or its file missing?";
  EXPECT_THAT(doubts_about([](bool, int64_t n, float value) { return n % 2 ? value : 5.5f; }),
              ElementsAre(doubt));
  EXPECT_THAT(doubts_about([](bool is_test, int64_t n, float value) {
                return n % 2 ? value : is_test ? 5.5f : 4.5f;
              }),
              ElementsAre())
      << "it tells the splits apart";
}

TEST(OwnChecks, NameANumberThatMarksWhatIsMissing) {
  const auto with = [](float mark) {
    return [mark](bool, int64_t n, float value) { return n % 6 == 1 ? mark : value; };
  };
  EXPECT_THAT(doubts_about(with(-999)),
              testing::Contains(StartsWith("the lowest value of train in channel 1 occurs 67 times "
                                           "and is far from all others")));
  EXPECT_THAT(doubts_about(with(99)), testing::Contains(HasSubstr("the highest value of train")));
  EXPECT_THAT(doubts_about(with(-4)), ElementsAre()) << "not that far";
  EXPECT_THAT(doubts_about([](bool, int64_t n, float v) { return n == 1 ? -999 : v; }),
              ElementsAre())
      << "an outlier";
  EXPECT_THAT(doubts_about([](bool, int64_t n, float v) {
                return n % 6 == 1 ? v + 99 : n % 2 == 1 ? 0 : v;
              }),
              ElementsAre())
      << "rare events";
}

TEST(OwnChecks, NameATestInAnotherUnit) {
  const auto times = [](float factor) {
    return [factor](bool is_test, int64_t, float v) { return is_test ? factor * v : v; };
  };
  const auto other = ElementsAre(StartsWith("values of test in channel 0 deviate by "));
  const auto plus = [](float change) {
    return [change](bool is_test, int64_t, float v) { return is_test ? v + change : v; };
  };
  const auto around_another = ElementsAre(StartsWith("values of test in channel 0 have the mean "));
  EXPECT_THAT(doubts_about(times(4)), other);
  EXPECT_THAT(doubts_about(times(0.001f)), other);
  EXPECT_THAT(doubts_about(times(3)), ElementsAre());
  EXPECT_THAT(doubts_about(plus(20)), around_another);
  EXPECT_THAT(doubts_about(plus(1.5)), around_another);
  EXPECT_THAT(doubts_about(plus(1)), ElementsAre());
}

// The factors of each of four channels in the test.
std::vector<std::string> doubts_about_factors(const std::vector<float>& factors, int examples) {
  return doubts_about(
      [&](bool is_test, int64_t n, float v) {
        return is_test ? v * factors.at(static_cast<size_t>(n) % factors.size()) : v;
      },
      {.train = examples,
       .test = examples,
       .positions = 20,
       .channels = static_cast<int>(factors.size())});
}

TEST(OwnChecks, NameATestOfWhichAllChannelsAreScaledAlike) {
  EXPECT_THAT(doubts_about_factors({1.5f, 1.5f, 1.5f, 1.5f}, 100),
              ElementsAre(StartsWith("values of test deviate by 1.48 times as much as")));
  EXPECT_THAT(doubts_about_factors({0.6f, 0.6f, 0.6f, 1}, 100),
              ElementsAre(HasSubstr("in 3 of 4 channels alike: are they in another unit?")));
  EXPECT_THAT(doubts_about_factors({1.5f, 1.3f, 1.7f, 1.4f}, 100), ElementsAre())
      << "another person";
  EXPECT_THAT(doubts_about_factors({1.2f, 1.2f, 1.2f, 1.2f}, 100), ElementsAre());
  EXPECT_THAT(doubts_about_factors({1.5f, 1.5f}, 100), ElementsAre()) << "two say little";
  float price = 0;
  EXPECT_THAT(doubts_about(
                  [&](bool is_test, int64_t n, float v) {
                    if (n % 4 == 0) price = v;
                    return (is_test ? 1.5f : 1) * (price + 0.1f * v);
                  },
                  {.train = 100, .test = 100, .positions = 20, .channels = 4}),
              ElementsAre())
      << "one price in four channels, in another year";
}

TEST(OwnChecks, NameSmallerFactorsInATestOfManyExamples) {
  const auto other = ElementsAre(HasSubstr("from the mean of train, those of train by 0.580"));
  EXPECT_THAT(doubts_about_factors({2.2f}, 200), other);
  EXPECT_THAT(doubts_about_factors({0.45f}, 200), other);
  EXPECT_THAT(doubts_about_factors({1.9f}, 200), ElementsAre());
  EXPECT_THAT(doubts_about_factors({2.2f}, 100), ElementsAre());
}

// A few examples of an event that the test has more often by chance.
TEST(OwnChecks, LeaveATestWithMoreOfFewEventsAlone) {
  EXPECT_THAT(doubts_about([](bool is_test, int64_t n,
                              float v) { return n / 20 % (is_test ? 40 : 200) == 0 ? 20 * v : v; },
                           {.train = 400, .test = 400, .positions = 20, .channels = 1}),
              ElementsAre());
}

// Doubts about channels of which each has a mean and a deviation, those of the test its own.
std::vector<std::string> doubts_about_channels(const std::vector<std::array<float, 2>>& train,
                                               const std::vector<std::array<float, 2>>& test) {
  return doubts_about(
      [&](bool is_test, int64_t n, float v) {
        const auto [mean, factor] = (is_test ? test : train).at(static_cast<size_t>(n) % 4);
        return mean + factor * v;
      },
      {.train = 200, .test = 100, .positions = 20, .channels = 4});
}

TEST(OwnChecks, NameChannelsOfTheTestInAnotherOrder) {
  const std::vector<std::array<float, 2>> train = {{{0, 1}, {9, 2}, {0, 3}, {3, 1}}};
  EXPECT_THAT(doubts_about_channels(train, train), ElementsAre());
  EXPECT_THAT(doubts_about_channels(train, {{{0, 3}, {9, 2}, {0, 1}, {3, 1}}}),
              ElementsAre(StartsWith("channels 0, 2 of test are like channels 2, 0 of train")));
  EXPECT_THAT(doubts_about_channels(train, {{{9, 2}, {0, 3}, {0, 1}, {3, 1}}}),
              ElementsAre(StartsWith("channels 0, 1, 2 of test are like channels 1, 2, 0")));
  EXPECT_THAT(doubts_about_channels({{{0, 1}, {9, 2}, {0.2f, 1}, {3, 1}}},
                                    {{{0.2f, 1}, {9, 2}, {0, 1}, {3, 1}}}),
              ElementsAre(StartsWith("channels 0, 2 of test are like channels 2, 0 of train")))
      << "apart by a third of a deviation, and by many standard errors";
  EXPECT_THAT(doubts_about_channels({{{0, 1}, {9, 2}, {0.05f, 1}, {3, 1}}},
                                    {{{0.05f, 1}, {9, 2}, {0, 1}, {3, 1}}}),
              ElementsAre())
      << "by few";
  EXPECT_THAT(doubts_about_channels(train, {{{0, 3}, {9, 2}, {0, 1.5f}, {3, 1}}}), ElementsAre())
      << "one is like none of train";
  EXPECT_THAT(doubts_about_channels(train, {{{0, 3}, {9, 3}, {0, 1}, {3, 1}}}), ElementsAre())
      << "others have changed too";
  EXPECT_THAT(doubts_about_channels(train, {{{0, 1}, {9, 2}, {0, 3}, {-3, 1}}}),
              ElementsAre(StartsWith(
                  "values in channel 3 of test have the mean -2.990 and the deviation 0.575, "
                  "those of train the mean 2.988")))
      << "another sign";
  EXPECT_THAT(doubts_about_channels(train, {{{0, 1}, {9, 2}, {0, 3.9f}, {3, 1}}}),
              ElementsAre(HasSubstr("all other channels are as in train: has it another sign")));
  EXPECT_THAT(doubts_about_channels(train, {{{0, 1}, {9.2f, 2}, {0, 3.9f}, {3, 1}}}), ElementsAre())
      << "another year";
  EXPECT_THAT(doubts_about_channels({{{0, 1}, {9, 2}, {0, 1.1f}, {3, 1}}},
                                    {{{0, 1.1f}, {9, 2}, {0, 1}, {3, 1}}}),
              ElementsAre())
      << "channels that are alike";
}

TEST(OwnChecks, NameATestThatWasFilledWithZeros) {
  const auto zeros_from = [](int64_t first) {
    return [first](bool is_test, int64_t number, float value) {
      return is_test && number / 2 % 5 >= first ? 0 : value;
    };
  };
  EXPECT_THAT(doubts_about(zeros_from(2)),
              ElementsAre(StartsWith("40% of the values of test in channel 0 are equal to the one "
                                     "before, and 0% of those of train")));
  EXPECT_THAT(doubts_about(zeros_from(4)), ElementsAre());
}

// Doubts about splits of so many examples, whose tokens and labels `fill` writes.
std::vector<std::string> doubts_about_tokens(
    CustomConfig config, int examples,
    const std::function<void(bool is_test, std::vector<uint8_t>& tokens, int& label)>& fill) {
  const TestFolder root;
  Manifest manifest = imported_manifest("custom");
  manifest.token_bytes = 1;
  manifest.token_offset = 1;
  DatasetWriter writer(root.path("data"), manifest, 0);
  for (const char* name : {"train", "val", "test"}) {
    writer.begin_split(name);
    for (int i = 0; i < examples; ++i) {
      std::vector<uint8_t> tokens(static_cast<size_t>(config.length));
      int label = i % 2;
      fill(name == std::string("test"), tokens, label);
      writer.add(label, std::span<const uint8_t>(tokens));
    }
  }
  writer.finish();
  config.shortest = config.longest = config.length;
  return doubts_of_own_data(Dataset::open(root.path("data")), config, {"a", "b"});
}

// Doubts about tokens from 1 to 50, of which the test's are larger by so many.
std::vector<std::string> doubts_about_ids(uint8_t more) {
  CustomConfig config;
  config.input = "tokens";
  config.vocabulary = 200;
  config.length = 20;
  RandomStream random(9);
  return doubts_about_tokens(config, 40, [&](bool is_test, std::vector<uint8_t>& ids, int&) {
    for (uint8_t& id : ids) id = static_cast<uint8_t>(1 + random.below(50));
    for (const size_t place : {7, 8}) {
      if (is_test) ids[place] = static_cast<uint8_t>(ids[place] + more);
    }
  });
}

TEST(OwnChecks, NameTokensThatTheTrainingSplitLacks) {
  EXPECT_THAT(doubts_about_ids(0), ElementsAre());
  EXPECT_THAT(doubts_about_ids(100),
              ElementsAre("10% of the tokens of test are not in train: was it "
                          "encoded in another way?"));
}

TEST(OwnChecks, NameIdsOfATestThatWasEncodedWithAnotherVocabulary) {
  CustomConfig config;
  config.input = "tokens";
  config.vocabulary = 250;
  config.length = 40;
  const auto doubts_with = [&](const std::function<uint32_t(uint32_t id)>& id_in_test) {
    RandomStream random(9);
    return doubts_about_tokens(config, 200, [&](bool is_test, std::vector<uint8_t>& ids, int&) {
      for (uint8_t& id : ids) {
        const uint32_t drawn =
            5 + std::min({random.below(200), random.below(200), random.below(200)});
        id = static_cast<uint8_t>(is_test ? id_in_test(drawn) : drawn);
      }
    });
  };
  EXPECT_THAT(doubts_with([](uint32_t id) { return id; }), ElementsAre());
  EXPECT_THAT(doubts_with([](uint32_t id) { return id + 4; }),
              ElementsAre(StartsWith("tokens of test occur as often as those of train whose ids "
                                     "are 4 less: ")));
  EXPECT_THAT(doubts_with([](uint32_t id) { return id - 4; }),
              ElementsAre(HasSubstr("are 4 more: ")));
  EXPECT_THAT(doubts_with([](uint32_t id) { return 5 + (id - 5) * 77 % 200; }),
              ElementsAre(HasSubstr("was it encoded in another way?")));
}

// Doubts about words as rare as those of a language, of which the test has its share of new ones.
TEST(OwnChecks, ExpectNewTokensWhereManyAreRare) {
  CustomConfig config;
  config.input = "tokens";
  config.vocabulary = 250;
  config.length = 2;
  RandomStream random(9);
  const auto rare = [&](bool, std::vector<uint8_t>& ids, int&) {
    for (uint8_t& id : ids) id = static_cast<uint8_t>(1 + random.below(200));
  };
  EXPECT_THAT(doubts_about_tokens(config, 60, rare), ElementsAre());
}

// Doubts about texts whose letters and labels are changed in the test: those of class 1 have more
// of the letter z.
std::vector<std::string> doubts_about_texts(
    const std::function<void(std::vector<uint8_t>& text, int& label)>& change) {
  CustomConfig config;
  config.input = "text";
  config.vocabulary = 257;
  config.length = 60;
  RandomStream random(9);
  return doubts_about_tokens(config, 400,
                             [&](bool is_test, std::vector<uint8_t>& text, int& label) {
                               label = static_cast<int>(random.below(2));
                               for (uint8_t& letter : text)
                                 letter = static_cast<uint8_t>('a' + random.below(20));
                               for (int z = 0; label == 1 && z < 3; ++z)
                                 text[random.below(60)] = 'z';
                               // Three of ten labels say nothing.
                               if (random.below(10) < 3) label = static_cast<int>(random.below(2));
                               if (is_test) change(text, label);
                             });
}

TEST(OwnChecks, NameATestThatWasEncodedOrLabelledInAnotherWay) {
  using Text = std::vector<uint8_t>;
  EXPECT_THAT(doubts_about_texts([](Text&, int&) {}), ElementsAre());
  EXPECT_THAT(doubts_about_texts([](Text& text, int&) {
                for (uint8_t& letter : text) letter = letter < 'j' ? 'b' : letter;
              }),
              testing::Contains(HasSubstr("of the tokens of test would have to be others")));
  RandomStream random(3);
  EXPECT_THAT(
      doubts_about_texts([&](Text&, int& label) { label = static_cast<int>(random.below(2)); }),
      testing::Contains(HasSubstr("do labels and inputs of the test mean what those of "
                                  "train mean?")));
}

TEST(OwnChecks, NameChannelsInThePlaceOfPositions) {
  EXPECT_THAT(doubts_about(unchanged, {.positions = 3, .channels = 13}),
              ElementsAre("sequences have 3 positions with 13 channels each: is the array [N, C, "
                          "L]? It is read as [N, L, C]; transpose it then"));
  EXPECT_THAT(doubts_about(unchanged, {.positions = 3, .channels = 12}), ElementsAre());
}

TEST(OwnChecks, NameTimeInThePlaceOfChannels) {
  const Sizes sizes{.train = 200, .test = 40, .positions = 16, .channels = 32};
  float last = 0;
  const auto along_channels = [&](bool, int64_t n, float v) {
    last = n % 32 == 0 ? v : 0.8f * last + 0.6f * v;
    return last + static_cast<float>(n / 32 % 16);  // each sensor has an offset
  };
  EXPECT_THAT(doubts_about(along_channels, sizes),
              ElementsAre(StartsWith("sequences have 16 positions with 32 channels each: is the "
                                     "array [N, C, L]?")));
  const auto noisy = [&](bool is_test, int64_t n, float v) {
    return along_channels(is_test, n, v) + static_cast<float>(n * 7919 % 2003) / 700;
  };
  EXPECT_THAT(doubts_about(noisy, sizes), testing::SizeIs(1)) << "neighbors correlate by a third";
  std::array<float, 32> lasts{};
  const auto along_positions = [&](bool, int64_t n, float v) {
    float& of_channel = lasts.at(static_cast<size_t>(n) % 32);
    of_channel = 0.8f * of_channel + 0.6f * v;
    return of_channel;
  };
  EXPECT_THAT(doubts_about(along_positions, sizes), ElementsAre());
  float common = 0;
  const auto alike = [&](bool, int64_t n, float v) {
    if (n % 32 == 0) common = v;
    return 3 * common + v;
  };
  EXPECT_THAT(doubts_about(alike, sizes), ElementsAre()) << "channels with a cause in common";
  EXPECT_THAT(doubts_about(unchanged, sizes), ElementsAre());
}

TEST(OwnChecks, NameValuesOfTheTestInAnotherOrder) {
  const Sizes sizes{.train = 200, .test = 200, .positions = 40, .channels = 2};
  const auto along_positions = [](bool turned) {
    return [turned](bool is_test, int64_t n, float v) {
      const int64_t place = n / 2 % 40;
      const auto growing = static_cast<float>(turned && is_test ? 39 - place : place);
      return v + 0.1f * growing + static_cast<float>(50 * (n % 2));
    };
  };
  EXPECT_THAT(doubts_about(along_positions(false), sizes), ElementsAre());
  EXPECT_THAT(doubts_about(along_positions(true), sizes),
              ElementsAre(StartsWith("the large values of test are at other positions than")));
}

// Doubts about brightness that grows along 40 pixels, after a change of those of the test.
std::vector<std::string> doubts_about_pixels(
    const std::function<void(std::vector<uint8_t>& pixels)>& change) {
  CustomConfig config;
  config.input = "tokens";
  config.vocabulary = 256;
  config.length = 40;
  RandomStream random(9);
  return doubts_about_tokens(config, 200, [&](bool is_test, std::vector<uint8_t>& pixels, int&) {
    for (size_t k = 0; k < pixels.size(); ++k) {
      pixels[k] = static_cast<uint8_t>(1 + 4 * k + random.below(90));
    }
    if (is_test) change(pixels);
  });
}

TEST(OwnChecks, NamePixelsOfTheTestInAnotherOrder) {
  using Pixels = std::vector<uint8_t>;
  const auto in_doubt = ElementsAre(
      StartsWith("the large tokens of test are at other positions than those of train"));
  EXPECT_THAT(doubts_about_pixels([](Pixels& p) { std::ranges::reverse(p); }), in_doubt);
  EXPECT_THAT(doubts_about_pixels([](Pixels& p) {
                const Pixels old = p;
                for (size_t k = 0; k < p.size(); ++k) p[k] = old[k % 5 * 8 + k / 5];
              }),
              in_doubt)
      << "transposed";
  EXPECT_THAT(doubts_about_pixels([](Pixels&) {}), ElementsAre());
  EXPECT_THAT(doubts_about_pixels([](Pixels& p) {
                for (uint8_t& pixel : p) pixel = static_cast<uint8_t>(pixel * 9 / 10);
              }),
              ElementsAre())
      << "another camera";
}

TEST(OwnChecks, NameATestThatIsTooSmall) {
  EXPECT_THAT(
      doubts_about(unchanged, {.test = 2}),
      ElementsAre("the test has 2 examples: an accuracy on it is uncertain by 50% to either "
                  "side"));
  EXPECT_THAT(doubts_about(unchanged, {.test = 19}), ElementsAre(HasSubstr("by 22% to either")));
  EXPECT_THAT(doubts_about(unchanged, {.test = 20}), ElementsAre());
}

}  // namespace
}  // namespace lra::tasks
