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
    EXPECT_THAT(all, HasSubstr("examples of train hold nothing but 0" + ending.substr(0, 2)));
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

}  // namespace
}  // namespace lra::tasks
