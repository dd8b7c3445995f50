// What an import says about files: how they were read, and what about them is odd. How each format
// is read is tested in tests/python/own_files_check.py.
#include <gmock/gmock.h>

#include "base/rng.h"
#include "tasks/own/test_own_data.h"

namespace lra::tasks {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using OwnFiles = OwnData;

std::string json_row(const std::string& sequence, int i, const std::string& more = "") {
  return "{" + sequence + ", \"label\": " + std::to_string(i % 2) + more + "}";
}

std::string tokens_row(const std::string& ids, int i, const std::string& more = "") {
  return json_row("\"tokens\": [" + ids + "]", i, more);
}

TEST_F(OwnFiles, AClassThatTheTestLacksIsInDoubt) {
  const auto row = [](const char* split, int i) {
    return R"({"text": "t)" + std::to_string(i) + R"(", "label": ")" +
           (i == 0 && split[1] == 'r' ? "rare"
            : i % 2                   ? "a"
                                      : "b") +
           R"(", "split": ")" + split + "\"}";
  };
  std::string rows;
  for (const char* split : {"train", "val", "test"}) {
    rows += rows_of(40, [&](int i) { return row(split, i + split[0] * 100 * (split[1] != 'r')); });
  }
  EXPECT_THAT(doubted("a.jsonl", rows), HasSubstr("class 2 has 0 of the 40 examples of test"));
}

TEST_F(OwnFiles, ClassesWithAnotherShareOfTheTestAreInDoubt) {
  const auto row = [](int i, int period) {
    return R"({"text": "t)" + std::to_string(i) + R"(", "label": ")" + (i % period ? "a" : "b") +
           "\"}";
  };
  const Dataset data =
      imported({file("train.jsonl", rows_of(100, [&](int i) { return row(i, 20); })),
                file("test.jsonl", rows_of(60, [&](int i) { return row(i + 100, 2); }))});
  EXPECT_THAT(doubts_of(data), HasSubstr("class 'b' is 50% of test and 6% of train"));
}

TEST_F(OwnFiles, ATestWhoseLabelsMeanSomethingElseIsInDoubt) {
  const auto row = [](int i, int label) {
    return "{\"x\": [" + std::to_string(10 * (i % 3) + i * 7919 % 5) + ".5, " +
           std::to_string(i * 31 % 97) + "], \"label\": " + std::to_string(label) + "}";
  };
  const std::string train = file("train.jsonl", rows_of(300, [&](int i) { return row(i, i % 3); }));
  const auto doubts_with = [&](int shift) {
    const auto shifted = [&](int i) { return row(i + 1000, (i + 1000 + shift) % 3); };
    return doubts_of(imported({train, file("test.jsonl", rows_of(100, shifted))}));
  };
  EXPECT_THAT(doubts_with(1),
              HasSubstr("do labels and inputs of the test mean what those of train mean?"));
  EXPECT_THAT(doubts_with(0), Not(HasSubstr("mean what")));
}

TEST_F(OwnFiles, AVocabularyOfIdsThatNeverOccurIsInDoubt) {
  const auto row = [](int i) {
    return tokens_row(std::to_string(i == 7 ? 16000000 : i) + ", 5", i);
  };
  EXPECT_THAT(doubted("a.jsonl", rows_of(60, row)),
              HasSubstr("only 60 different token ids occur, and the largest is 16,000,000"));
}

TEST_F(OwnFiles, BaselinesFindALabelInTheInput) {
  const auto accuracy = [&](const std::string& rows, const std::string& name) {
    const Dataset data = imported({file("a.jsonl", rows)});
    for (const checks::Baseline& baseline : task_->baselines(data)) {
      if (baseline.name == name) return baseline.accuracy;
    }
    return -1.0;
  };
  const auto noise = [](int i) { return std::to_string(i * 7919 % 1000); };
  const auto last_token = [&](int i) {
    return tokens_row(noise(i) + ", " + noise(i + 5) + ", " + std::to_string(800 + i % 2), i);
  };
  EXPECT_EQ(accuracy(rows_of(400, last_token), "best single token"), 1);
  const auto value = [&](int i) {
    return json_row("\"x\": [[0.5, " + noise(i) + "], [" + std::to_string(-3 * (i % 2)) + ", 2.5]]",
                    i);
  };
  EXPECT_EQ(accuracy(rows_of(400, value), "best single token"), 1);
  const auto name_in = [&](int i) {
    return R"({"text": "about )" + noise(i) +
           (i % 2 ? " [category: Sport] " : " [category: arts] ") + noise(i + 3) +
           R"( words", "label": ")" + (i % 2 ? "sport" : "arts") + "\"}";
  };
  EXPECT_EQ(accuracy(rows_of(400, name_in), "most telling word"), 1);
}

TEST_F(OwnFiles, WhatWasReadIsKept) {
  const auto row = [](int i) {
    return std::to_string(i) + ",t" + std::to_string(i) + "," + std::to_string(i % 2) + ",n";
  };
  const Dataset data = imported({file("all.csv", "id,text,label,note\n" + rows_of(30, row))});
  std::string facts;
  for (const checks::Fact& fact : task_->reading(data))
    facts += fact.name + ": " + fact.value + "\n";
  EXPECT_THAT(facts, HasSubstr("input: text, 2 to 3 bytes (text)\ncolumn 'id': "));
  EXPECT_THAT(facts, HasSubstr("column 'text': string, 2 to 3 bytes, sequence, name\n"));
  EXPECT_THAT(facts, HasSubstr("column 'label': number, 2 classes, label, name\n"));
  EXPECT_THAT(facts, HasSubstr("column 'note': string, ignored, no name of a sequence\n"));
  EXPECT_EQ(read(data, "splits"),
            "val was drawn from train by class, with task.split_seed=0; test was drawn from train "
            "by class, with task.split_seed=0");
}

TEST_F(OwnFiles, ALabelsNumbersAreInTheirOrder) {
  const auto row = [](const char* const* names, int i) {
    return "t" + std::to_string(i) + "," + names[i % 3];
  };
  const char* const whole[] = {"10", "9.0", "-1"};
  const char* const words[] = {"b", "a", "10"};
  const auto names_of = [&](const char* const* names) {
    const Dataset data = imported(
        {file("a.csv", "text,label\n" + rows_of(30, [&](int i) { return row(names, i); }))});
    return task_->label_names(data);
  };
  EXPECT_THAT(names_of(whole), ElementsAre("-1", "9", "10"));
  EXPECT_THAT(names_of(words), ElementsAre("10", "a", "b"));
  EXPECT_THAT(
      refused("a.csv",
              "text,label\n" + rows_of(30, [](int i) { return "t," + std::to_string(i) + ".5"; })),
      HasSubstr("they are real numbers"));
}

TEST_F(OwnFiles, OneSubjectInTwoSplitsIsInDoubt) {
  const auto doubts_with = [&](int num_subjects) {
    return doubted("all.jsonl", rows_of(200, [&](int i) {
                     return "{\"x\": [0.5, " + std::to_string(i * 7919 % 1000) +
                            "], \"subject\": " + std::to_string(i % num_subjects) +
                            ", \"label\": " + std::to_string(i % 2) + "}";
                   }));
  };
  const auto shared = HasSubstr("column 'subject': 20 of the 20 test examples have a value there");
  EXPECT_THAT(doubts_with(20), shared);
  EXPECT_THAT(doubts_with(200), Not(shared)) << "each has its own";
}

TEST_F(OwnFiles, FactsOfTheDataCannotBeChanged) {
  const Dataset data = imported({file("all.jsonl", rows_of(60, text_row))});
  const ConfigTable facts = task_on_data("custom", root_.path("own")).settings;
  const auto error_with = [&](const char* name, std::variant<int64_t, std::string> value) {
    ConfigTable settings = facts;
    std::visit([&](auto& v) { settings.set(name, {v, ""}); }, value);
    return error_of([&] { kCustomTask.make(settings)->refuse_other_settings(data); });
  };
  EXPECT_THAT(error_with("num_train", int64_t{10}), HasSubstr("its num_train is 48; expected 10"));
  EXPECT_THAT(error_with("labels", std::string(R"(["no", "Yes"])")), HasSubstr("its labels are"));
  EXPECT_EQ(error_with("length", int64_t{5}), "");
  EXPECT_THAT(error_of([&] { (void)task_on_data("custom:wine", root_.path("own")); }),
              HasSubstr("is the data set 'custom:own'; expected 'custom:wine'"));
}

TEST_F(OwnFiles, CuttingMostPositionsIsInDoubt) {
  const Dataset data = imported({file("all.jsonl", rows_of(60, text_row))});
  ConfigTable settings = task_on_data("custom", root_.path("own")).settings;
  const auto doubts_at = [&](int64_t length) {
    settings.set("length", {length, ""});
    return kCustomTask.make(settings)->doubts(data);
  };
  EXPECT_THAT(doubts_at(3), ElementsAre(HasSubstr("task.length=3 cuts off 69")));
  EXPECT_THAT(doubts_at(9), ElementsAre());
}

TEST_F(OwnFiles, FixedLengthsAreThoseOfTheRun) {
  const auto row = [](const char* values) {
    return [=](int i) {
      return "{\"x\": [" + std::string(values) + std::to_string(i) +
             "], \"label\": " + std::to_string(i % 2) + "}";
    };
  };
  (void)imported({file("short.jsonl", rows_of(60, row("0.5, ")))});
  const std::unique_ptr<Task> run = std::move(task_);
  const Dataset longer = imported({file("long.jsonl", rows_of(60, row("0.5, 1.5, ")))});
  EXPECT_THAT(error_of([&] { run->refuse_other_kind(longer); }),
              HasSubstr("its sequences have 3 positions; expected 2, as all of the run's data"));
  EXPECT_THAT(task_->reading(longer).at(0).value, HasSubstr("values, 3 positions (real"));
}

TEST_F(OwnFiles, OtherDataMustHaveTheLabelsOfTheRun) {
  const auto row = [](const char* a, const char* b) {
    return [=](int i) {
      return R"({"x": [0.5, )" + std::to_string(i) + R"(], "label": ")" + (i % 2 ? a : b) + "\"}";
    };
  };
  (void)imported({file("pets.jsonl", rows_of(60, row("cat", "dog")))});
  const std::unique_ptr<Task> run = std::move(task_);
  const Dataset wolves = imported({file("wild.jsonl", rows_of(60, row("dog", "wolf")))});
  EXPECT_THAT(error_of([&] { run->refuse_other_kind(wolves); }),
              AllOf(HasSubstr("its labels are"), HasSubstr("wolf"), HasSubstr("cat")));
  const Dataset longer = imported({file("more.jsonl", rows_of(90, row("cat", "dog")))});
  EXPECT_EQ(error_of([&] { run->refuse_other_kind(longer); }), "");
  EXPECT_THAT(run->doubts(longer),
              ElementsAre(HasSubstr("its values were standardized by the mean")));
  const Dataset alike = imported({file("again.jsonl", rows_of(62, row("cat", "dog")))});
  EXPECT_THAT(run->doubts(alike), ElementsAre()) << "another sample of the same";
}

}  // namespace
}  // namespace lra::tasks
