// Messages of an import about its files: how they were read, and what about them is odd. How each
// format is read is tested in tests/python/own_files_check.py.
#include <gmock/gmock.h>

#include "tasks/data_checks.h"
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
}

TEST_F(OwnFiles, CuttingMostPositionsIsFoundForTheRun) {
  const auto row = [](int i) {
    return "{\"x\": [0.5, 1.5, 2.5, 3, 4, 5, 6, " + std::to_string(i) +
           "], \"label\": " + std::to_string(i % 2) + "}";
  };
  const Dataset data = imported({file("a.jsonl", rows_of(60, row))});
  const auto found_at = [&](int64_t length) {
    ConfigTable settings = task_on_data("custom", root_.path("own")).settings;
    settings.set("length", {length, ""});
    std::string found;
    for (const CheckFinding& finding : checks_of(*kCustomTask.make(settings), data)) {
      found += finding.check + " ";
    }
    return found;
  };
  EXPECT_THAT(found_at(3), HasSubstr("cut"));
  EXPECT_THAT(found_at(8), Not(HasSubstr("cut")));
}

TEST_F(OwnFiles, SubjectsInTrainAndTestAreFound) {
  const auto rows = [](const char* column, int apart, int num_things = 20) {
    return rows_of(120, [=](int i) {
      const bool is_test = i >= 80;
      return "{\"x\": [" + std::to_string(i * 37 % 101) + ", 0.5], \"" + column + "\": \"p" +
             std::to_string(i % num_things + (is_test ? apart : 0)) + "\", \"split\": \"" +
             (is_test ? "test"
              : i % 4 ? "train"
                      : "val") +
             "\", \"label\": " + std::to_string(i % 2) + "}";
    });
  };
  EXPECT_THAT(found_in("a.jsonl", rows("subject", 0)), HasSubstr("warning: groups: 30 of the 40"));
  EXPECT_THAT(found_in("a.jsonl", rows("subject", 50)), Not(HasSubstr("groups")));
  EXPECT_THAT(found_in("a.jsonl", rows("hour", 0)), Not(HasSubstr("groups")));
  EXPECT_THAT(found_in("a.jsonl", rows("subject", 0, 3)), Not(HasSubstr("groups"))) << "topics";
}

TEST_F(OwnFiles, ChecksAreThereBeforeTheData) {
  const std::string rows = rows_of(120, [](int i) {
    return "{\"x\": [" + std::to_string(i * 37 % 101) +
           ", 0.5], \"label\": " + std::to_string(i % 2) + "}";
  });
  QuietProgress progress;
  const ImportedData imported =
      kCustomTask.make(parse_toml("", "test"))
          ->import({file("a.jsonl", rows)}, root_.path("later"), progress);
  EXPECT_FALSE(std::filesystem::exists(root_.path("later")));
  EXPECT_TRUE(std::filesystem::exists(imported.writer.partial_folder()));
}

}  // namespace
}  // namespace lra::tasks
