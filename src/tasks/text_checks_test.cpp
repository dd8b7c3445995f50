#include "tasks/text_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Manifest text_manifest(int64_t token_offset = 1) {
  Manifest manifest = imported_manifest("text");
  manifest.token_offset = token_offset;
  return manifest;
}

TEST(TextChecks, RefuseTextsOfOneClassOrSplitThatAreWrittenAnotherWay) {
  const auto problem = [](const std::string& odd_split, int32_t odd_label, const std::string& end) {
    const TestFolder root;
    DatasetWriter writer(root.path("data"), text_manifest(), 0);
    for (const std::string split : {"train", "test"}) {
      writer.begin_split(split);
      for (int32_t i = 0; i < 40; ++i) {
        std::string text = split + std::to_string(i);
        if ((odd_split.empty() || split == odd_split) && (odd_label < 0 || i % 2 == odd_label)) {
          text = end == "tab" ? "a\t" + text : end == "front" ? " " + text : text + end;
        }
        writer.add(i % 2, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
      }
    }
    writer.finish();
    return error_of([&] {
      std::vector<std::string> doubts;
      judge_texts(Dataset::open(root.path("data")), doubts);
    });
  };
  EXPECT_THAT(problem("", 0, "\n"), HasSubstr("texts that end in white space: 100.00% of class 0"));
  EXPECT_THAT(problem("test", -1, " "), HasSubstr("texts that end in white space"));
  EXPECT_THAT(problem("", 1, "\nmore"),
              HasSubstr("texts that hold a line end: 100.00% of class 1"));
  EXPECT_THAT(problem("", 1, "front"), HasSubstr("texts that begin with white space"));
  EXPECT_THAT(problem("train", 1, "tab"), HasSubstr("texts that hold a tab"));
  EXPECT_EQ(problem("", -1, "\n"), "") << "all alike";
  EXPECT_EQ(problem("", 0, "x"), "") << "not a matter of how it is written";
}

TEST(TextChecks, DoubtPassagesOfOneSplit) {
  const auto doubts = [](const std::string& of_test) {
    const TestFolder root;
    DatasetWriter writer(root.path("data"), text_manifest(), 0);
    for (const std::string split : {"train", "test"}) {
      writer.begin_split(split);
      for (int32_t i = 0; i < 100; ++i) {
        std::string text = "The film " + std::to_string(i * 7919 % 997) + " had a long " +
                           (split == "test" ? of_test : "<br />") + " end, all in all.";
        writer.add(i % 2, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
      }
    }
    writer.finish();
    std::vector<std::string> found;
    judge_texts(Dataset::open(root.path("data")), found);
    std::string all;
    for (const std::string& doubt : found) all += doubt + "\n";
    return all;
  };
  EXPECT_THAT(doubts("&lt;br"), HasSubstr("were they cleaned or written in the same way"));
  EXPECT_THAT(doubts("<br />"), testing::Not(HasSubstr("in the same way")));
}

TEST(TextChecks, CountBlankTextsAndPictures) {
  const TestFolder root;
  const auto count = [&](int64_t token_offset, const std::vector<std::string>& contents) {
    std::filesystem::remove_all(root.path("data"));
    DatasetWriter writer(root.path("data"), text_manifest(token_offset), 0);
    writer.begin_split("train");
    for (const std::string& text : contents) {
      writer.add(0, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
    }
    writer.finish();
    const Dataset dataset = Dataset::open(root.path("data"));
    return count_blank(dataset.split("train"), dataset.manifest());
  };
  EXPECT_EQ(count(1, {"", " \t\r\n", "x", " x ", "xx", "\n"}), 3);
  EXPECT_EQ(count(0, {"xx", "xy", "x"}), 1) << "a symbol alone may be an example";
}

// The doubts about a training split of these texts.
std::vector<std::string> doubts_of(const std::function<std::string(int)>& text_of) {
  const TestFolder root;
  DatasetWriter writer(root.path("data"), text_manifest(), 0);
  writer.begin_split("train");
  for (int i = 0; i < 40; ++i) {
    const std::string text = text_of(i);
    writer.add(i % 2, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }
  writer.finish();
  std::vector<std::string> doubts;
  judge_texts(Dataset::open(root.path("data")), doubts);
  return doubts;
}

TEST(TextChecks, DoubtWhatIsNoText) {
  const auto number = [](int i) { return std::to_string(i); };
  EXPECT_THAT(doubts_of([&](int i) { return number(i) + " Words that differ in their number"; }),
              ElementsAre());
  EXPECT_THAT(doubts_of([&](int i) { return number(i) + " words without a capital"; }),
              ElementsAre("texts of train have no capital letter: were they cleaned?"));
  EXPECT_THAT(doubts_of([&](int i) { return number(i) + ".txt A b"; }),
              ElementsAre(HasSubstr("are very short: half of them have at most 10 bytes")));
  EXPECT_THAT(doubts_of([&](int i) { return number(i) + "VGhpcyBpcyBhIHRleHQgaW4gYmFzZTY0Cg=="; }),
              ElementsAre(HasSubstr("have hardly any white space")));
  EXPECT_THAT(
      doubts_of([&](int i) { return number(i) + " 17 4 212 9 1105 33 2 81 6 54 3 19 8 70"; }),
      ElementsAre("texts of train have hardly any letters: are they ids of words?"));
  const auto cut_at = [&](int i, size_t size) {
    std::string text = number(i);
    while (text.size() < size) text += " Some words";
    return text.substr(0, size);
  };
  EXPECT_THAT(
      doubts_of([&](int i) { return i < 19 ? number(i) + " is whole" : cut_at(i, 150); }),
      ElementsAre("21 of the 40 different texts of train have exactly 150 bytes: were they cut?"));
  EXPECT_THAT(doubts_of([&](int i) { return cut_at(i, 150 + static_cast<size_t>(i)); }),
              ElementsAre());
  EXPECT_THAT(doubts_of([&](int i) { return "<html> <title>404 Not Found: /paper/" + number(i); }),
              ElementsAre(HasSubstr("40 of the 40 different texts of train begin with "
                                    "'<html> <title>404 No'")));
}

}  // namespace
}  // namespace lra::tasks
