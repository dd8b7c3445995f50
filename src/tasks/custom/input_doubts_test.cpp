#include <gmock/gmock.h>

#include <sstream>

#include "tasks/custom/test_own_data.h"

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
  EXPECT_THAT(doubted("a.csv", rows("film_id", 1)), Not(HasSubstr("is ignored")));
  EXPECT_THAT(doubted("a.csv", rows("class_id", 12)), Not(HasSubstr("is ignored")));
  EXPECT_THAT(doubted("a.csv", rows("year", 4)), Not(HasSubstr("is ignored")));
  std::string json;
  for (int i = 0; i < 60; ++i) {
    json += "{\"text\": \"words " + std::to_string(i) + "\", \"label\": " + std::to_string(i % 2) +
            ", \"user\": " + std::to_string(i / 5) + "}\n";
  }
  EXPECT_THAT(doubted("a.jsonl", json), HasSubstr("column 'user' is ignored, and 6 of the 6"));
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
  EXPECT_EQ(found([](Text text) {
              std::string bases;
              for (size_t i = 0; i < 80; ++i) bases += "ACGT"[text[i % 7] * (i + 1) % 4];
              return bases + text.substr(0, 3);
            }),
            "");
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

TEST_F(InputDoubts, RefuseFilesJoinedWithTheirHeaders) {
  const std::string rows = "text,label\nsome words,a\nother words,b\n";
  EXPECT_THAT(refused("all.csv", rows + rows), HasSubstr("all.csv:4: repeats the header"));
}

}  // namespace
}  // namespace lra::tasks
