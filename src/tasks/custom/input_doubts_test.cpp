#include <gmock/gmock.h>

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
  EXPECT_THAT(doubted("a.csv", rows("year", 4)), Not(HasSubstr("is ignored")));
  std::string json;
  for (int i = 0; i < 60; ++i) {
    json += "{\"text\": \"words " + std::to_string(i) + "\", \"label\": " + std::to_string(i % 2) +
            ", \"user\": " + std::to_string(i / 20) + "}\n";
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

}  // namespace
}  // namespace lra::tasks
