#include "checks/check_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <set>

#include "checks/test_data.h"

namespace lra::checks {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Names = std::set<std::string>;
using Change = std::function<void(TestSplits&)>;

class CheckTableTest : public ::testing::Test {
 protected:
  std::vector<CheckFinding> found(const TestSplits& splits, InputKind input, int64_t channels = 1,
                                  DataFacts facts = {.is_own = true}) {
    facts.stats.input = input;
    if (facts.stats.length == 0) facts.stats.length = 1000;
    return run(write_examples(root_, splits, input, channels), facts);
  }
  // The checks with a finding of this level.
  Names names(const TestSplits& splits, InputKind input, int64_t channels = 1,
              const DataFacts& facts = {.is_own = true}, CheckLevel level = CheckLevel::kWarning) {
    Names names;
    for (const CheckFinding& finding : found(splits, input, channels, facts)) {
      if (finding.level == level) names.insert(finding.check);
    }
    return names;
  }
  Names values(const Change& change, int channels = 1) {
    TestSplits splits = {{"train", waves(200, 1, 2, 60, channels)},
                         {"val", waves(40, 2, 2, 60, channels)},
                         {"test", waves(120, 3, 2, 60, channels)}};
    change(splits);
    return names(splits, InputKind::kValues, channels);
  }
  Names texts(const Change& change) {
    TestSplits splits = {{"train", sentences(200, 1)}, {"test", sentences(120, 3)}};
    change(splits);
    return names(splits, InputKind::kText);
  }
  Names tokens(const Change& change) {
    TestSplits splits = {{"train", id_lists(200, 1)}, {"test", id_lists(120, 3)}};
    change(splits);
    return names(splits, InputKind::kTokens);
  }
  static void nothing(TestSplits&) {}

  TestFolder root_;
};

// Changes every example: of all splits, or of the named one.
Change each(const std::function<void(TestExample&)>& change, const std::string& split = "") {
  return [=](TestSplits& s) {
    for (auto& [name, examples] : s) {
      if (!split.empty() && name != split) continue;
      for (TestExample& example : examples) change(example);
    }
  };
}

// Copies `count` training examples into the test.
void copy_to_test(TestSplits& splits, size_t count) {
  for (size_t i = 0; i < count; ++i) splits["test"][i] = splits["train"][i];
}

TEST_F(CheckTableTest, IsSilentOnHonestData) {
  EXPECT_THAT(values(nothing), IsEmpty());
  EXPECT_THAT(values(nothing, 9), IsEmpty());
  EXPECT_THAT(texts(nothing), IsEmpty());
  EXPECT_THAT(tokens(nothing), IsEmpty());
  EXPECT_THAT(names({{"train", pictures(200, 1)}, {"test", pictures(100, 2)}}, InputKind::kPixels),
              IsEmpty());
}

TEST_F(CheckTableTest, SameFileStopsTheImport) {
  const auto error = [&](const Change& change) { return error_of([&] { values(change); }); };
  EXPECT_THAT(error([](TestSplits& s) { s["test"] = s["train"]; }),
              HasSubstr("test repeats examples of train, one by one; look for a copy"));
  EXPECT_THAT(error([](TestSplits& s) { s["test"] = s["val"]; }), HasSubstr("examples of val"));
  EXPECT_EQ(error(nothing), "");
  EXPECT_EQ(error([](TestSplits& s) {  // of tiny tables, by chance
              s["val"].resize(19);
              s["test"] = s["val"];
            }),
            "");
}

TEST_F(CheckTableTest, CopiesAreExamplesOfAnEarlierSplit) {
  EXPECT_EQ(values([](TestSplits& s) { copy_to_test(s, 12); }), Names{"copies"});
  EXPECT_THAT(values([](TestSplits& s) { copy_to_test(s, 1); }), IsEmpty()) << "one by chance";
  EXPECT_EQ(texts([](TestSplits& s) { copy_to_test(s, 12); }), Names{"copies"});
  EXPECT_EQ(texts([](TestSplits& s) {
              copy_to_test(s, 12);
              for (TestExample& example : s["test"]) example.text = " " + example.text + "\n";
              s["test"][0].text[1] = 'i';
            }),
            Names{"copies"});
  const auto categories = [](int64_t count) {  // few different rows are equal by chance
    std::vector<TestExample> rows = waves(count, 4, 2, 4);
    for (TestExample& row : rows) {
      for (float& x : row.numbers) x = x > 0 ? 1.0f : 0.0f;
    }
    return rows;
  };
  EXPECT_THAT(names({{"train", categories(200)}, {"test", categories(90)}}, InputKind::kValues),
              Not(Contains("copies")));
}

TEST_F(CheckTableTest, ContradictionsAreEqualExamplesWithTwoLabels) {
  const auto relabeled = [](TestSplits& s) {
    for (size_t i = 0; i < 8; ++i) {
      s["train"][i + 20] = s["train"][i];
      s["train"][i + 20].label = 1 - s["train"][i].label;
    }
  };
  EXPECT_EQ(values(relabeled), Names{"contradictions"});
  EXPECT_THAT(values([](TestSplits& s) { s["train"][9].numbers = s["train"][8].numbers; }),
              IsEmpty());
}

// One character tells the classes of code apart; brackets are all that a text may have.
TEST_F(CheckTableTest, TextsThatDifferInOneCharacterAreNotEqual) {
  const auto all =
      [](const std::function<std::string(const std::string&, int32_t, size_t)>& change) {
        return [=](TestSplits& s) {
          for (auto& [name, examples] : s) {
            for (size_t i = 0; i < examples.size(); ++i) {
              examples[i].text = change(examples[i / 2 * 2].text, examples[i].label, i);
            }
          }
        };
      };
  EXPECT_THAT(texts(all([](const std::string& text, int32_t label, size_t) {
                return text.substr(0, text.rfind(' ')) + (label == 0 ? " a < b;" : " a <= b;");
              })),
              IsEmpty());
  RandomStream random(3);
  EXPECT_THAT(texts(all([&](const std::string&, int32_t, size_t i) {
                std::string text = std::to_string(i % 7);
                for (int k = 0; k < 120; ++k) text += "()[]{}"[random.below(6)];
                return text;
              })),
              IsEmpty());
}

TEST_F(CheckTableTest, OverlapFindsWindowsOfOneRecording) {
  const std::vector<float> recording = waves(1, 7, 2, 8000)[0].numbers;
  const auto windows = [&](ptrdiff_t step) {
    return each([&recording, step, at = ptrdiff_t{0}](TestExample& e) mutable {
      const auto first = recording.begin() + at % 7900;
      e.numbers.assign(first, first + 60);
      at += step;
    });
  };
  EXPECT_EQ(values(windows(4993)), Names{"overlap"});
  EXPECT_THAT(values(windows(60)), Not(Contains("copies")));
}

// Rounded curves, states and levels that are held: many positions in a row are equal by chance.
TEST_F(CheckTableTest, OverlapIsSilentWhereValuesStayTheSame) {
  const auto made = [](const std::function<std::vector<float>(RandomStream&)>& make) {
    return each(
        [make, random = RandomStream(7)](TestExample& e) mutable { e.numbers = make(random); });
  };
  const auto rounded = made([](RandomStream& random) {
    std::vector<float> numbers;
    const double size = random.normal(), phase = random.uniform(), other = random.uniform();
    for (int t = 0; t < 500; ++t) {
      numbers.push_back(
          static_cast<float>(std::round(7 * (size * std::sin(6.28 * (t / 400.0 + phase)) +
                                             std::sin(6.28 * (t / 300.0 + other))))));
    }
    return numbers;
  });
  const auto held = [&](uint32_t levels, double moves) {
    return made([=](RandomStream& random) {
      std::vector<float> numbers;
      auto level = static_cast<float>(random.below(levels));
      for (int t = 0; t < 600; ++t) {
        if (random.uniform() < moves) level = static_cast<float>(random.below(levels));
        numbers.push_back(level);
      }
      return numbers;
    });
  };
  const auto counter = made([](RandomStream& random) {
    std::vector<float> numbers;
    float count = 0;
    for (int t = 0; t < 300; ++t) numbers.push_back(count += random.below(10) == 0);
    return numbers;
  });
  EXPECT_THAT(values(rounded), IsEmpty());
  EXPECT_THAT(tokens(held(10, 0.03)), IsEmpty());
  EXPECT_THAT(tokens(held(2, 0.1)), IsEmpty());
  EXPECT_THAT(tokens(counter), IsEmpty());
}

// A form or a license is shared by few texts, but not by one or two.
TEST_F(CheckTableTest, OverlapIsSilentOnForms) {
  const std::vector<TestExample> forms = sentences(20, 8);
  size_t k = 0;
  const auto add_form = [&](TestExample& e) { e.text = forms[k++ % 20].text + " " + e.text; };
  EXPECT_THAT(texts(each(add_form)), IsEmpty());
}

TEST_F(CheckTableTest, OverlapIsOfExamplesThatAreNoCopies) {
  EXPECT_EQ(values([](TestSplits& s) {
              for (size_t i = 0; i < 12; ++i) {
                s["test"][i] = s["train"][i];
                s["test"][i].numbers[30] += 1;
                s["test"][i + 20] = s["val"][i];
              }
            }),
            (Names{"copies", "overlap"}));
}

TEST_F(CheckTableTest, OverlapFindsTextsThatWereChanged) {
  EXPECT_EQ(texts([](TestSplits& s) {
              copy_to_test(s, 30);
              for (size_t i = 0; i < 30; ++i) {
                for (char& c : s["test"][i].text) c = c == ' ' ? '\t' : c;
                s["test"][i].text += " And more.";
              }
            }),
            Names{"overlap"});
  const auto add_prompt = [](TestExample& e) {
    e.text =
        "Read the review of a film below and say whether who wrote it liked it, in one word and "
        "without an explanation: " +
        e.text;
  };
  EXPECT_THAT(texts(each(add_prompt)), IsEmpty());
}

TEST_F(CheckTableTest, GroupsAreSharedByTrainAndTest) {
  const TestSplits splits = {{"train", waves(100, 1)}, {"test", waves(60, 2)}};
  const auto with = [&](int64_t num_shared) {
    DataFacts facts{.is_own = true};
    facts.groups = {{"patient", num_shared, 60}};
    return names(splits, InputKind::kValues, 1, facts);
  };
  EXPECT_EQ(with(40), Names{"groups"});
  EXPECT_THAT(with(0), IsEmpty());
  EXPECT_THAT(with(5), IsEmpty());
}

TEST_F(CheckTableTest, ClassesThatASplitLacks) {
  EXPECT_THAT(values(each([](TestExample& e) { e.label = 1; }, "test")), Contains("classes"));
  const auto three = [](int64_t classes_of_test) {
    return TestSplits{{"train", id_lists(200, 1, 3)},
                      {"test", id_lists(90, 3, static_cast<int>(classes_of_test))}};
  };
  DataFacts facts{.is_own = true};
  facts.stats.num_classes = 3;
  EXPECT_EQ(names(three(2), InputKind::kTokens, 1, facts), Names{"classes"});
  EXPECT_THAT(names(three(3), InputKind::kTokens, 1, facts), IsEmpty());
}

TEST_F(CheckTableTest, BlankExamples) {
  EXPECT_EQ(texts([](TestSplits& s) {
              for (size_t i = 0; i < 6; ++i) s["train"][i].text = i % 2 ? " \n" : "";
            }),
            Names{"blank"});
  EXPECT_THAT(values([](TestSplits& s) {
                for (size_t i = 0; i < 30; ++i) {
                  s["train"][i].numbers.assign(60, 0.25f * static_cast<float>(i));
                }
              }),
              Contains("blank"));
  EXPECT_THAT(values([](TestSplits& s) {  // a device that is off for a part of most days
                for (auto& [name, examples] : s) {
                  for (size_t i = 0; i < examples.size(); ++i) {
                    std::fill_n(examples[i].numbers.begin() + 20, 10, 0.0f);
                    if (i % 10 == 0) examples[i].numbers.assign(60, 0.0f);
                  }
                }
              }),
              IsEmpty());
}

TEST_F(CheckTableTest, ShiftIsOfLengthsMeansAndDeviations) {
  const auto of_test = [](const std::function<void(TestExample&)>& change) {
    return each(change, "test");
  };
  EXPECT_EQ(values(of_test([](TestExample& e) {
              for (float& x : e.numbers) x *= 1000;
            })),
            Names{"shift"});
  EXPECT_EQ(values(of_test([](TestExample& e) {
              for (float& x : e.numbers) x += 3;
            })),
            Names{"shift"});
  EXPECT_EQ(values(of_test([](TestExample& e) { e.numbers.resize(20); })), Names{"shift"});
  EXPECT_EQ(texts(of_test([](TestExample& e) {
              for (char& c : e.text) c = static_cast<char>(std::toupper(c));
            })),
            Names{"shift"});
  EXPECT_THAT(values(of_test([](TestExample& e) {
                for (float& x : e.numbers) x += 0.2f;
              })),
              IsEmpty());
}

// Examples that differ in loudness hide no factor of all.
TEST_F(CheckTableTest, ShiftFindsAnotherScaleOfUnlikeExamples) {
  const auto scaled = [](const char* split, float factor) {
    return [=](TestSplits& s) {
      RandomStream random(6);
      for (auto& [name, examples] : s) {
        for (TestExample& example : examples) {
          const auto loudness = static_cast<float>(std::exp(0.7 * random.normal()));
          for (float& x : example.numbers) x *= loudness * (name == split ? factor : 1);
        }
      }
    };
  };
  EXPECT_THAT(values(scaled("test", 1)), IsEmpty());
  for (const char* split : {"train", "test"}) {
    EXPECT_THAT(values(scaled(split, 255)), Contains("shift")) << split;
    EXPECT_THAT(values(scaled(split, 32768)), Contains("shift")) << split;
  }
}

// Archives scale each series by itself: what differs is rounding.
TEST_F(CheckTableTest, ShiftIsSilentOnSeriesOfMeanZero) {
  const auto standardize = [](TestExample& e) {
    Spread all;
    for (const float x : e.numbers) all.add(x);
    for (float& x : e.numbers) x = static_cast<float>((x - all.mean) / all.deviation());
  };
  EXPECT_THAT(values(each(standardize)), IsEmpty());
}

TEST_F(CheckTableTest, UnseenIdsAreMoreThanRareOnes) {
  const auto renumber = [](TestExample& e) {
    for (float& id : e.numbers) id += 500;
  };
  EXPECT_EQ(tokens(each(renumber, "test")), Names{"unseen_ids"});
}

TEST_F(CheckTableTest, EndMarksOfOneSplit) {
  const auto mark_begin = [](TestExample& e) { e.numbers.insert(e.numbers.begin(), 2.0f); };
  const auto mark_end = [](TestExample& e) { e.numbers.push_back(2.0f); };
  EXPECT_EQ(tokens(each(mark_begin, "train")), Names{"end_marks"});
  EXPECT_EQ(tokens(each(mark_end, "train")), Names{"end_marks"});
  EXPECT_THAT(tokens(each(mark_begin)), IsEmpty());
}

TEST_F(CheckTableTest, PaddingIsAtOneEnd) {
  EXPECT_EQ(tokens(each([](TestExample& e) { e.numbers.resize(60, 0.0f); })), Names{"padding"});
  const auto border = [](TestExample& e) {
    std::fill_n(e.numbers.begin(), 10, 0.0f);
    std::fill_n(e.numbers.rbegin(), 10, 0.0f);
  };
  const auto silence_first = [](TestExample& e) { std::fill_n(e.numbers.begin(), 10, 0.0f); };
  const auto silence_also_elsewhere = [](TestExample& e) {
    std::fill_n(e.numbers.rbegin(), 10, 0.0f);
    e.numbers[20] = 0;
  };
  EXPECT_THAT(values(each(border)), IsEmpty());
  EXPECT_THAT(values(each(silence_first)), IsEmpty());
  EXPECT_THAT(values(each(silence_also_elsewhere)), IsEmpty());
}

TEST_F(CheckTableTest, SentinelsRecurFarFromAllOtherValues) {
  EXPECT_THAT(values([](TestSplits& s) {
                for (size_t i = 0; i < 60; ++i) s["train"][i].numbers[i % 50] = -999;
              }),
              Contains("sentinel"));
  EXPECT_THAT(values([](TestSplits& s) { s["train"][3].numbers[5] = -999; }),
              Not(Contains("sentinel")));
  const auto replaced = [](float offset, float other, bool is_rounded) {
    return each([=](TestExample& e) {
      for (float& x : e.numbers) {
        x = x > 1 ? other : offset + (is_rounded ? static_cast<float>(x > 0) : x / 10);
      }
    });
  };
  EXPECT_THAT(values(replaced(10, -999, false)), Names{"sentinel"});
  EXPECT_THAT(values(replaced(10, 0, false)), IsEmpty()) << "0 is off, or none";
  EXPECT_THAT(values(replaced(0, 10, true)), IsEmpty()) << "0, 1 and 10 are levels";
}

TEST_F(CheckTableTest, AxesThatWereExchanged) {
  const auto data = [](bool exchanged) {
    TestSplits splits = {{"train", waves(100, 1, 2, 60, 1)}, {"test", waves(60, 2, 2, 60, 1)}};
    RandomStream random(5);
    each([&](TestExample& e) {
      std::vector<float> rows;  // ten positions of 60 channels, each a slow curve of its own
      for (int p = 0; p < 10; ++p) {
        double x = random.normal();
        for (int c = 0; c < 60; ++c) {
          x = 0.9 * x + 0.44 * random.normal();
          rows.push_back(static_cast<float>(x));
        }
      }
      e.numbers = rows;
      for (size_t i = 0; !exchanged && i < rows.size(); ++i) {
        e.numbers[i % 60 * 10 + i / 60] = rows[i];
      }
    })(splits);
    return splits;
  };
  EXPECT_EQ(names(data(true), InputKind::kValues, 60), Names{"axes"});
  EXPECT_THAT(names(data(false), InputKind::kValues, 10), IsEmpty());
  const auto rows = [&](size_t count) {
    TestSplits splits = data(true);
    each([&](TestExample& e) { e.numbers.resize(60 * count); })(splits);
    return names(splits, InputKind::kValues, 60);
  };
  EXPECT_EQ(rows(3), Names{"axes"});
  EXPECT_EQ(rows(1), Names{"axes"});
}

TEST_F(CheckTableTest, CutIsOfMostPositions) {
  const TestSplits splits = {{"train", waves(100, 1)}, {"test", waves(60, 2)}};
  DataFacts facts{.is_own = true};
  facts.stats.length = 25;
  EXPECT_EQ(names(splits, InputKind::kValues, 1, facts), Names{"cut"});
  facts.stats.input = InputKind::kValues;
  const Dataset data = write_examples(root_, splits, InputKind::kValues);
  EXPECT_THAT(run_on_settings(data, facts), ::testing::SizeIs(1));
  facts.stats.length = 35;
  EXPECT_THAT(run_on_settings(data, facts), IsEmpty());
}

TEST_F(CheckTableTest, BrokenTexts) {
  EXPECT_EQ(texts(each([](TestExample& e) { e.text = "b'" + e.text + "'"; })),
            Names{"broken_text"});
  EXPECT_EQ(texts(each([](TestExample& e) { e.text += "\uFFFD"; })), Names{"broken_text"});
  const auto file_name = [](TestExample& e) {
    e.text = "data/reviews/" + to_hex(hash64(e.text)) + ".txt";
  };
  EXPECT_THAT(texts(each(file_name)), Contains("broken_text"));
  const auto base64 = [](TestExample& e) {
    for (char& c : e.text) c = c == ' ' ? '7' : c == '.' ? 'Q' : c;
    e.text.resize(e.text.size() / 4 * 4);
  };
  EXPECT_THAT(texts(each(base64)), Contains("broken_text"));
}

TEST_F(CheckTableTest, ClassFormatTellsTheLabel) {
  EXPECT_EQ(texts(each([](TestExample& e) { e.text += e.label == 1 ? "\n" : ""; })),
            Names{"class_format"});
  EXPECT_THAT(texts(each([](TestExample& e) { e.text += "\n"; })), IsEmpty());
}

TEST_F(CheckTableTest, ChangedBenchmarksHaveAnotherHashOrSize) {
  const TestSplits splits = {{"train", sentences(100, 1)}, {"test", sentences(60, 2)}};
  const std::string hash = hash_of_examples(write_examples(root_, splits, InputKind::kText));
  const auto with = [&](const SplitCounts& counts, const std::string& published) {
    DataFacts facts;
    facts.published = PublishedData{.counts = counts, .examples = published};
    facts.wanted = {.train = 25000, .test = 25000};
    return names(splits, InputKind::kText, 1, facts);
  };
  EXPECT_THAT(with({.train = 100, .test = 60}, hash), IsEmpty());
  EXPECT_EQ(with({.train = 100, .test = 60}, std::string(32, '0')), Names{"changed_benchmark"});
  EXPECT_EQ(with({.train = 101, .test = 60}, hash), Names{"changed_benchmark"});
  EXPECT_THAT(with({.train = 100, .test = 60}, ""), IsEmpty()) << "only its size is known";
}

// A size that the settings ask for is no finding: the settings of the run say it.
TEST_F(CheckTableTest, BenchmarksOfTheSizeThatWasAskedForAreNotChanged) {
  DataFacts facts;
  facts.published = PublishedData{.counts = {.train = 25000, .test = 25000}};
  facts.wanted = {.train = 100, .test = 60};
  const TestSplits splits = {{"train", sentences(100, 1)}, {"test", sentences(60, 2)}};
  EXPECT_THAT(names(splits, InputKind::kText, 1, facts), IsEmpty());
}

TEST_F(CheckTableTest, RemarksMarkNothing) {
  const auto remarked = [&](const TestSplits& splits, const DataFacts& facts, int64_t channels) {
    std::string text;
    for (const CheckFinding& finding : found(splits, InputKind::kValues, channels, facts)) {
      EXPECT_FALSE(marks_results(finding)) << finding.text;
      text += text_of(finding) + "\n";
    }
    return text;
  };
  TestSplits splits = {{"train", waves(220, 1, 2, 60, 2)}, {"test", waves(30, 2, 2, 60, 2)}};
  EXPECT_THAT(remarked(splits, {.is_own = true}, 2), HasSubstr("note: remarks: the test has 30"));
  for (size_t i = 0; i < 205; ++i) splits["train"][i].label = 0;
  each([](TestExample& e) {
    for (size_t i = 1; i < e.numbers.size(); i += 2) e.numbers[i] = 4;
  })(splits);
  const std::string found = remarked(splits,
                                     {.is_own = true,
                                      .label_names = {"None", "some"},
                                      .baselines = {{"nearest class mean", 0.97}}},
                                     2);
  for (const char* part :
       {"an easy task", "uneven classes", "the label 'None'", "1 of 2 channels never vary"}) {
    EXPECT_THAT(found, HasSubstr(part));
  }
}

TEST_F(CheckTableTest, AcceptedWarningsMarkNothing) {
  TestSplits splits = {{"train", waves(200, 1)}, {"test", waves(120, 3)}};
  copy_to_test(splits, 12);
  std::vector<CheckFinding> findings = found(splits, InputKind::kValues);
  EXPECT_THAT(accept({"copies", "padding"}, findings), ElementsAre("padding")) << "found nothing";
  ASSERT_THAT(findings, Not(IsEmpty()));
  EXPECT_TRUE(findings[0].accepted);
  EXPECT_FALSE(marks_results(findings[0]));
  EXPECT_THAT(text_of(findings[0]), HasSubstr("accepted: copies: 12 of the 120 examples of test"));
  EXPECT_THAT(error_of([&] { accept({"copys"}, findings); }),
              HasSubstr("no warning is named 'copys'; did you mean 'copies'?"));
  EXPECT_THAT(error_of([&] { accept({"remarks"}, findings); }), HasSubstr("no warning is named"));
}

TEST(CheckTable, HasAtMostTwentyChecks) {
  EXPECT_LE(all_checks().size(), 20U);
  Names names;
  for (const Check& check : all_checks()) names.insert(std::string(check.name));
  EXPECT_EQ(names.size(), all_checks().size());
}

// Written by LRA_WRITE_DOCS=1 build/test_checks --gtest_filter='CheckTable.*'.
TEST(CheckTable, WritesItsPageOfTheDocumentation) {
  const std::string path = LRA_CHECKOUT "/docs/checks.md";
  std::ifstream file(path);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = page.find("| name |"), end = page.find("\n\n", begin) + 1;
  ASSERT_NE(begin, std::string::npos);
  const std::string written = page.substr(0, begin) + documentation() + page.substr(end);
  if (std::getenv("LRA_WRITE_DOCS")) std::ofstream(path) << written;
  EXPECT_EQ(page, written);
}

}  // namespace
}  // namespace lra::checks
