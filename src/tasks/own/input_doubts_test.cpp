#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

#include "base/rng.h"
#include "tasks/own/test_own_data.h"

namespace lra::tasks {
namespace {

using testing::HasSubstr;
using testing::Not;

// 100 examples of 40 numbers, with zeros at the ends.
std::string padded_rows(const std::string& key, bool in_front, bool behind) {
  RandomStream random(3);
  std::string rows;
  for (int i = 0; i < 100; ++i) {
    const int first = in_front ? 8 + static_cast<int>(random.below(9)) : 0;
    const int last = 40 - (behind ? 8 + static_cast<int>(random.below(9)) : 0);
    std::string numbers;
    for (int k = 0; k < 40; ++k) {
      const uint64_t number = k < first || k >= last ? 0 : 1 + random.below(50);
      numbers += (k > 0 ? "," : "") + std::to_string(number) + (key == "values" ? ".5" : "");
    }
    rows += "{\"" + key + "\": [" + numbers + "], \"label\": " + std::to_string(i % 2) + "}\n";
  }
  return rows;
}

class InputDoubts : public OwnData {};

TEST_F(InputDoubts, NamePaddingAtOneEnd) {
  for (const std::string key : {"tokens", "values"}) {
    const auto doubts = [&](bool in_front, bool behind) {
      return doubted("all.jsonl", padded_rows(key, in_front, behind));
    };
    EXPECT_THAT(doubts(false, true), HasSubstr("of train end with the same")) << key;
    EXPECT_THAT(doubts(true, false), HasSubstr("of train begin with the same")) << key;
    EXPECT_THAT(doubts(true, true), Not(HasSubstr("padding"))) << key << ": a border";
    EXPECT_THAT(doubts(false, false), Not(HasSubstr("padding"))) << key;
  }
}

// 100 examples of 20 to 28 ids from 5 to 24 in two files, train and test, each changed by a
// function.
class TokenEnds : public OwnData {
 protected:
  using Change = std::function<void(std::vector<int>&, int)>;
  std::string doubts_about(const Change& in_train, const Change& in_test) {
    RandomStream random(6);
    std::vector<std::string> files;
    for (const std::string split : {"train", "test"}) {
      std::string rows;
      for (int i = 0; i < 100; ++i) {
        std::vector<int> ids(20 + random.below(9));
        for (int& id : ids) id = 5 + static_cast<int>(random.below(20));
        (split == "train" ? in_train : in_test)(ids, i);
        std::string text;
        for (const int id : ids) text += (text.empty() ? "" : ", ") + std::to_string(id);
        rows += "{\"tokens\": [" + text + "], \"label\": " + std::to_string(i % 2) + "}\n";
      }
      files.push_back(file(split + ".jsonl", rows));
    }
    return doubts_of(imported(files));
  }
};

TEST_F(TokenEnds, NameMarksThatOneSplitLacks) {
  const auto none = [](std::vector<int>&, int) {};
  const auto begin = [](std::vector<int>& ids, int) { ids.front() = 1; };
  const auto end = [](std::vector<int>& ids, int) { ids.back() = 2; };
  EXPECT_THAT(doubts_about(begin, none),
              HasSubstr("token 1 is the first of 100% of the sequences"));
  EXPECT_THAT(doubts_about(none, end), HasSubstr("token 2 is the last of 0% of the sequences"));
  EXPECT_THAT(doubts_about(begin, begin), Not(HasSubstr("encoded in the same way")));
}

TEST_F(TokenEnds, NamePaddingToTheLongestOfABatch) {
  const auto padded = [](std::vector<int>& ids, int i) { ids.resize(ids.size() + i % 8, 0); };
  const auto padded_in_front = [](std::vector<int>& ids, int i) {
    ids.insert(ids.begin(), static_cast<size_t>(i % 8), 3);
  };
  const auto ended = [](std::vector<int>& ids, int) { ids.push_back(2); };
  EXPECT_THAT(doubts_about(padded, padded),
              HasSubstr("token 0 occurs only in runs at the end of sequences"));
  EXPECT_THAT(doubts_about(padded_in_front, padded_in_front),
              HasSubstr("token 3 occurs only in runs at the beginning"));
  EXPECT_THAT(doubts_about(ended, ended), Not(HasSubstr("is it padding")));
}

TEST_F(InputDoubts, NameColumnsInTheOrderOfWordsAndHexadecimalIds) {
  const auto table = [](const std::vector<int>& numbers) {
    std::string header, row;
    for (const int number : numbers) {
      header += "f" + std::to_string(number) + ",";
      row += std::to_string(number) + ".5,";
    }
    return header + "label\n" + row + "a\n" + row + "b\n";
  };
  EXPECT_THAT(refused("a.csv", table({0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9})),
              HasSubstr("column 'f2' comes after 'f11'"));
  EXPECT_THAT(refused("a.csv", table({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})),
              Not(HasSubstr("comes after")));
  const auto tokens = [](const std::string& first) {
    return "tokens,label\n" + first + ",a\n1 2 2f,b\n1 5,a\n";
  };
  EXPECT_THAT(refused("a.csv", tokens("1 a3 2f")), HasSubstr("'a3' is not a number"));
  EXPECT_THAT(refused("a.csv", tokens("the cat sat")), Not(HasSubstr("is not a number")));
}

TEST_F(InputDoubts, NameMeasurementsThatAreReadAsTokens) {
  const auto rows = [](bool smooth) {
    RandomStream random(9);
    std::string rows;
    for (int i = 0; i < 60; ++i) {
      std::string ids;
      int64_t level = 2000;
      for (int k = 0; k < 60; ++k) {
        level = smooth ? level + static_cast<int64_t>(random.below(101)) - 50
                       : static_cast<int64_t>(random.below(4000));
        ids += (k > 0 ? "," : "") + std::to_string(level);
      }
      rows += "{\"tokens\": [" + ids + "], \"label\": " + std::to_string(i % 2) + "}\n";
    }
    return rows;
  };
  EXPECT_THAT(doubted("all.jsonl", rows(true)), HasSubstr("as those of measurements are"));
  EXPECT_THAT(doubted("all.jsonl", rows(false)), Not(HasSubstr("measurements")));
}

TEST_F(InputDoubts, NameASquareArrayWhoseColumnsMayBeTheExamples) {
  const auto rows = [](int examples) {
    RandomStream random(4);
    std::string rows;
    for (int i = 0; i < examples; ++i) {
      std::string numbers = "0.5";
      for (int k = 1; k < 60; ++k) numbers += "," + std::to_string(random.below(50)) + ".5";
      rows += "{\"values\": [" + numbers + "], \"label\": " + std::to_string(i % 2) + "}\n";
    }
    return rows;
  };
  EXPECT_THAT(doubted("all.jsonl", rows(60)), HasSubstr("60 examples of 60 positions"));
  EXPECT_THAT(doubted("all.jsonl", rows(61)), Not(HasSubstr("of 60 positions")));
}

TEST_F(InputDoubts, NameIdsThatTrainAndTestShare) {
  const auto rows = [](const std::string& name, int per_id) {
    std::string csv = "text,label," + name + "\n";
    for (int i = 0; i < 60; ++i) {
      csv += "words " + std::to_string(i) + "," + (i % 2 ? "a" : "b") + "," +
             std::to_string(i / per_id) + "\n";
    }
    return csv;
  };
  EXPECT_THAT(doubted("a.csv", rows("Film_ID", 4)),
              HasSubstr("column 'Film_ID' is ignored, and 6 of the 6 test examples"));
  EXPECT_THAT(doubted("a.csv", rows("recording", 4)), HasSubstr("column 'recording' is ignored"));
  EXPECT_THAT(doubted("a.csv", rows("source_file", 4)), HasSubstr("is ignored, and 6"));
  EXPECT_THAT(doubted("a.csv", rows("film_id", 1)), Not(HasSubstr("is ignored")));
  EXPECT_THAT(doubted("a.csv", rows("class_id", 12)), Not(HasSubstr("is ignored")));
  EXPECT_THAT(doubted("a.csv", rows("year", 4)), Not(HasSubstr("is ignored")));
  std::string json;
  for (int i = 0; i < 60; ++i) {
    json += "{\"text\": \"words " + std::to_string(i) + "\", \"label\": " + std::to_string(i % 2) +
            ", \"user\": " + std::to_string(i / 5) + "}\n";
  }
  EXPECT_THAT(doubted("a.jsonl", json), HasSubstr("column 'user' is ignored, and 6 of the 6"));
  std::string named_classes = "text,label,class_name\n";
  for (int i = 0; i < 60; ++i) {
    const std::string number = std::to_string(i % 12);
    named_classes += "words " + std::to_string(i) + "," + number + ",name " + number + "\n";
  }
  EXPECT_THAT(doubted("a.csv", named_classes), Not(HasSubstr("is ignored")));
}

TEST_F(InputDoubts, NameFilesInThePlaceOfTexts) {
  const auto rows = [](const std::string& before, const std::string& after) {
    std::string lines = "text,label\n";
    for (int i = 0; i < 100; ++i) {
      lines += before + std::to_string(i) + after + "," + std::to_string(i % 2) + "\n";
    }
    return lines;
  };
  EXPECT_THAT(doubted("all.csv", rows("data/pos/film_", ".txt")), HasSubstr("names of files"));
  EXPECT_THAT(doubted("all.csv", rows("\"one of either/or, ", " times.\"")),
              Not(HasSubstr("names of files")));
}

TEST_F(InputDoubts, NameWhatHappenedToTheTextsBefore) {
  const auto found = [&](const std::function<std::string(const std::string&)>& change) {
    std::string lines = "text,label\n";
    for (int i = 0; i < 300; ++i) {
      const std::string number = std::to_string(i);
      lines += "\"" + change(number + " films were seen, and number " + number + " was good") +
               "\"," + std::to_string(i % 2) + "\n";
    }
    std::istringstream doubts(doubted("all.csv", lines));
    std::string of_texts;
    for (std::string doubt; std::getline(doubts, doubt);) {
      if (doubt.find("texts of") != doubt.npos) of_texts += doubt + "\n";
    }
    return of_texts;
  };
  using Text = const std::string&;
  EXPECT_EQ(found([](Text text) { return text; }), "");
  EXPECT_THAT(found([](Text text) { return "b'" + text + "'"; }), HasSubstr("Python writes bytes"));
  EXPECT_THAT(found([](Text text) { return text + "..."; }), HasSubstr("were they cut"));
  EXPECT_THAT(found([](Text text) { return text + "\uFFFD"; }), HasSubstr("U+FFFD"));
  EXPECT_THAT(found([](Text text) { return text + " [PAD] [PAD]"; }),
              HasSubstr("marks of padding"));
  EXPECT_THAT(found([](Text text) { return "Read this review of a film: " + text; }),
              HasSubstr("begin with 'Read this review of '"));
  EXPECT_THAT(found([](Text text) { return text.substr(0, text.find(' ')) + " 17 4 211 6"; }),
              HasSubstr("are numbers: are they ids of words"));
  EXPECT_THAT(found([](Text text) {
                std::string encoded = "V2l0aCBzb21lIHdpbmUsIHNvbWUgZnJpZW5kcyBh";
                for (const char c : text.substr(0, 3)) encoded += c == ' ' ? 'x' : c;
                return encoded + "9";
              }),
              HasSubstr("base64"));
  const auto cut_at_120 = [](std::string text, const char* more) {
    while (text.size() < 400) text += more;
    return text.substr(0, 120);
  };
  EXPECT_THAT(found([&](Text text) { return cut_at_120(text, " and seen once more"); }),
              HasSubstr("different texts of train have exactly 120 bytes: were they cut?"));
  EXPECT_THAT(
      found([&](Text text) {  // of the same number of characters
        std::string accents;
        for (int i = text[text.find(' ') - 1]; i < '9'; ++i) accents += "\u00e9";
        return cut_at_120(text, " and seen once more").replace(40, accents.size() / 2, accents);
      }),
      HasSubstr("have exactly 120 characters: were they cut?"));
  EXPECT_EQ(found([&](Text text) {
              std::string other = text;
              for (char& c : other) c = c == ' ' ? 'T' : c == 'e' ? 'A' : c;
              return cut_at_120(other, "ACGT");
            }),
            "");
  EXPECT_EQ(found([&](Text text) {
              const std::string cut = cut_at_120(text, " and seen once more");
              return text[0] == '7' ? cut : cut.substr(0, 60 + text.size() % 7 + text[1] % 20);
            }),
            "")
      << "one text in nine";
  EXPECT_EQ(found([](Text text) {
              std::string bases;
              for (size_t i = 0; i < 80; ++i) bases += "ACGT"[text[i % 7] * (i + 1) % 4];
              return bases + text.substr(0, 3);
            }),
            "");
}

// Examples of 20 positions, of which `number` writes each.
std::string rows_of_values(int count, const std::function<std::string(int example, int k)>& number,
                           int length = 20) {
  return rows_of(count, [&](int i) {
    std::string list;
    for (int k = 0; k < length; ++k) list += (k > 0 ? ", " : "") + number(i, k);
    return "{\"values\": [" + list + "], \"label\": " + std::to_string(i % 2) + "}";
  });
}

TEST_F(InputDoubts, NameValuesOfWhichFloat32KeepsTooLittle) {
  RandomStream random(5);
  const auto doubts = [&](double offset, double size) {
    return doubted("all.jsonl", rows_of_values(100, [&](int, int) {
                     std::ostringstream text;
                     text.precision(17);
                     text << offset + size * static_cast<double>(random.below(1001)) / 1000;
                     return text.str();
                   }));
  };
  EXPECT_THAT(doubts(1.7e9, 100),
              HasSubstr("values are stored as float32, which has steps of 128 at 1.7e+09"));
  EXPECT_THAT(doubts(1e6, 1), HasSubstr("subtract an offset"));
  EXPECT_THAT(doubts(1e-3, 1e-9), HasSubstr("subtract an offset"));
  EXPECT_THAT(doubts(1000, 1), Not(HasSubstr("subtract an offset")));
  EXPECT_THAT(doubts(0, 1), Not(HasSubstr("subtract an offset")));
}

TEST_F(InputDoubts, LeaveLargeValuesAloneThatFloat32HoldsOrThatAreConstant) {
  const auto doubts = [&](const std::function<std::string(int example, int k)>& number) {
    return doubted("all.jsonl", rows_of_values(100, number));
  };
  EXPECT_THAT(doubts([](int i, int) { return std::to_string(1700000001 + 1000 * i) + ".5"; }),
              Not(HasSubstr("subtract an offset")))
      << "each example has its own";
  EXPECT_THAT(doubts([](int i, int k) { return std::to_string(8000000 + i + k % 3) + ".0"; }),
              Not(HasSubstr("subtract an offset")))
      << "exact";
  EXPECT_THAT(doubts([](int i, int k) {
                return std::to_string(300 + i) + (k % 2 ? ".1" : ".10000000000006");
              }),
              Not(HasSubstr("subtract an offset")))
      << "noise of float64";
}

TEST_F(InputDoubts, NameAMarkThatIsTooLargeForTheOthersToDiffer) {
  RandomStream random(5);
  const auto doubts = [&](const std::string& mark, int64_t values) {
    return doubted("all.jsonl", rows_of_values(100, [&](int, int) {
                     if (random.below(8) == 0) return mark;
                     return std::to_string(random.below(static_cast<uint64_t>(values))) + ".5";
                   }));
  };
  for (const char* mark : {"9999", "1e10", "1e20", "1e30", "3e38", "-3.4028234e38"}) {
    EXPECT_THAT(doubts(mark, 1000), HasSubstr("value of train occurs")) << mark;
  }
  EXPECT_THAT(doubts("1e20", 1), Not(HasSubstr("value of train occurs"))) << "two kinds";
}

TEST_F(InputDoubts, NameFewWholeNumbersThatMayBeIds) {
  RandomStream random(5);
  const auto doubts = [&](int values, int first, const std::string& settings = "") {
    return doubted("all.jsonl",
                   rows_of_values(100,
                                  [&](int, int) {
                                    const auto number = random.below(static_cast<uint64_t>(values));
                                    return std::to_string(first + static_cast<int>(number)) + ".0";
                                  }),
                   settings);
  };
  EXPECT_THAT(doubts(4, 0), HasSubstr("whole numbers up to 3, written as real ones"));
  EXPECT_THAT(doubts(4, 0, "input = 'values'"), Not(HasSubstr("written as real ones")));
  EXPECT_THAT(doubts(20, 1), HasSubstr("written as real ones"));
  EXPECT_THAT(doubts(2, 0), Not(HasSubstr("written as real ones"))) << "yes and no";
  EXPECT_THAT(doubts(4, 7), Not(HasSubstr("written as real ones")));
  EXPECT_THAT(doubts(60, 0), Not(HasSubstr("written as real ones"))) << "brightness";
  int64_t brightness = 8;
  EXPECT_THAT(
      doubted("all.jsonl", rows_of_values(100,
                                          [&](int, int) {
                                            brightness += static_cast<int64_t>(random.below(5)) - 2;
                                            brightness = std::clamp<int64_t>(brightness, 0, 16);
                                            return std::to_string(brightness) + ".0";
                                          })),
      Not(HasSubstr("written as real ones")))
      << "brightness from 0 to 16";
}

TEST_F(InputDoubts, NameExamplesThatAreTheSameEverywhere) {
  RandomStream random(5);
  const auto doubts = [&](const std::string& ending, int zeros, int length = 20) {
    return doubted("all.jsonl", rows_of_values(
                                    200,
                                    [&](int i, int) {
                                      const auto number = random.below(1000);
                                      return (i % 40 < zeros ? "0" : std::to_string(number)) +
                                             ending;
                                    },
                                    length));
  };
  for (const std::string ending : {".25", ""}) {
    const std::string all = doubts(ending, 20);
    EXPECT_THAT(all, HasSubstr("examples of train hold nothing but 0" + ending));
    EXPECT_THAT(all, Not(HasSubstr("with two labels")));
    EXPECT_THAT(all, Not(HasSubstr("repeat an earlier one")));
    EXPECT_THAT(all, Not(HasSubstr("are also in an earlier split")));
    EXPECT_THAT(doubts(ending, 1), Not(HasSubstr("nothing but"))) << "few";
    EXPECT_THAT(error_of([&] { doubts(ending, 40); }), HasSubstr("hold nothing but 0" + ending));
  }
  EXPECT_THAT(refused("all.jsonl", rows_of_values(200,
                                                  [](int i, int k) {
                                                    return i % 40 < 20 ? std::to_string(k)
                                                                       : std::to_string(i * k);
                                                  })),
              HasSubstr("are also in an earlier split"))
      << "equal, and not the same everywhere";
}

TEST_F(InputDoubts, NameRowsThatAreSteps) {
  const auto rows = [](int columns) {
    std::string lines;
    for (int k = 0; k < columns; ++k) lines += "f" + std::to_string(k) + ",";
    lines += "label\n";
    RandomStream random(3);
    for (int i = 0; i < 100; ++i) {
      for (int k = 0; k < columns; ++k) lines += "0." + std::to_string(random.below(1000)) + ",";
      lines += std::to_string(i % 2) + "\n";
    }
    return lines;
  };
  EXPECT_THAT(doubted("all.csv", rows(3)), HasSubstr("3 positions, the columns of a row"));
  EXPECT_THAT(doubted("all.csv", rows(8)), Not(HasSubstr("columns of a row")));
}

TEST_F(InputDoubts, NameRowsThatAreStepsByTheirLikeness) {
  constexpr int kColumns = 12, kRows = 1000;
  using Fill = std::function<void(int row, std::vector<double>& numbers)>;
  const auto doubts = [&](int rows_in_run, const Fill& fill) {
    std::string lines;
    for (int k = 0; k < kColumns; ++k) lines += "s" + std::to_string(k) + ",";
    lines += "label\n";
    std::vector<double> numbers(kColumns);
    for (int i = 0; i < kRows; ++i) {
      fill(i, numbers);
      for (const double number : numbers) lines += std::to_string(number) + ",";
      lines += "class" + std::to_string(i / rows_in_run % 2) + "\n";
    }
    return doubted("all.csv", lines);
  };
  RandomStream random(3);
  const auto uniform = [&] { return static_cast<double>(random.below(2001)) / 1000 - 1; };
  const Fill steps = [&](int, std::vector<double>& numbers) {
    for (double& number : numbers) number = 0.95 * number + 0.3 * uniform();
  };
  const Fill apart = [&](int row, std::vector<double>& numbers) {
    for (double& number : numbers) number = uniform() + 5 * (row / 50 % 2);
  };
  const Fill windows = [&](int row, std::vector<double>& numbers) {
    for (size_t k = 0; row == 0 && k < numbers.size(); ++k) numbers[k] = 0;
    std::rotate(numbers.begin(), numbers.begin() + 1, numbers.end());
    numbers.back() = 0.95 * numbers[numbers.size() - 2] + 0.3 * uniform();
  };
  const auto in_doubt = HasSubstr("hold 12 unrelated numbers: is a row one step");
  EXPECT_THAT(doubts(50, steps), in_doubt);
  EXPECT_THAT(doubts(500, steps), Not(in_doubt)) << "sorted by class";
  EXPECT_THAT(doubts(1, steps), Not(in_doubt)) << "the label changes with each row";
  EXPECT_THAT(doubts(50, apart), Not(in_doubt)) << "alike only as all of their class";
  EXPECT_THAT(doubts(50, windows), Not(in_doubt)) << "sequences that overlap";
}

TEST_F(InputDoubts, RefuseFilesJoinedWithTheirHeaders) {
  const std::string rows = "text,label\nsome words,a\nother words,b\n";
  EXPECT_THAT(refused("all.csv", rows + rows), HasSubstr("all.csv:4: repeats the header"));
}

}  // namespace
}  // namespace lra::tasks
