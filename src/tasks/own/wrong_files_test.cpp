// Files that can be read in two ways, or hold more than sequences and labels: none becomes a
// dataset without a word.
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

std::string wide_row(int i) {
  return "0." + std::to_string(i * 37 % 100) + ",1." + std::to_string(i * 53 % 90) + "," +
         std::to_string(i % 2);
}

std::string json_row(const std::string& sequence, int i, const std::string& more = "") {
  return "{" + sequence + ", \"label\": " + std::to_string(i % 2) + more + "}";
}

std::string tokens_row(const std::string& ids, int i, const std::string& more = "") {
  return json_row("\"tokens\": [" + ids + "]", i, more);
}

TEST_F(OwnFiles, AHeaderThatCountsTheColumnsIsNoExample) {
  const std::string rows = "0,1,2\n" + rows_of(30, wide_row);
  for (const char* label : {"\"2\"", "2", "\"c2\""}) {
    const Dataset data = imported({file("all.csv", rows)}, std::string("label = ") + label);
    EXPECT_EQ(data.split("train").size() + 6, 30);
    EXPECT_THAT(task_->label_names(data), ElementsAre("0", "1"));
  }
  EXPECT_THAT(refused("a.csv", rows), HasSubstr("has no column of labels"));
}

TEST_F(OwnFiles, ATableOfNumbersIsReadWhole) {
  const std::string rows = rows_of(30, wide_row);
  const Dataset named = imported({file("all.csv", "x,z,label\n" + rows)});
  EXPECT_EQ(task_->shape().length, 2);
  EXPECT_TRUE(task_->shape().values.has_value());
  EXPECT_EQ(read(named, "columns"), "'x' and 'z', a position each");
  const auto object = [](int i) {
    return json_row("\"f0\": 0." + std::to_string(i) + ", \"f1\": 2", i);
  };
  (void)imported({file("all.jsonl", rows_of(30, object))});
  EXPECT_EQ(task_->shape().length, 2);
  EXPECT_THAT(refused("a.csv", "x,name,label\n" + rows_of(30,
                                                          [](int i) {
                                                            return std::to_string(i) + ",a," +
                                                                   std::to_string(i % 2);
                                                          })),
              HasSubstr("column 'x' holds a single number, and 'name' would not be read"));
}

TEST_F(OwnFiles, AColumnThatCountsTheRowsIsNoPosition) {
  const auto row = [](int i) { return std::to_string(i) + "," + wide_row(i); };
  for (const char* name : {"", "Unnamed: 0", "id"}) {
    EXPECT_THAT(refused("a.csv", std::string(name) + ",a,b,label\n" + rows_of(30, row)),
                HasSubstr("would be a position of the sequence: is it the number of the row?"));
  }
  EXPECT_THAT(doubted("a.csv", "n,a,b,label\n" + rows_of(30, row)),
              HasSubstr("column 'n' counts the examples"));
  EXPECT_THAT(doubted("a.csv", "a,b,label\n" + rows_of(30, wide_row)),
              Not(HasSubstr("counts the examples")));
}

TEST_F(OwnFiles, AColumnThatIsNotNumberedAsTheOthersIsNoPosition) {
  const auto table = [](const std::string& first, const std::string& other) {
    std::string header = first, row = "7";
    for (int i = 0; i < 12; ++i) {
      header += "," + other + std::to_string(i);
      row += ",0." + std::to_string(i);
    }
    return header + ",label\n" + rows_of(30, [&](int i) {
             return row + std::to_string(i) + "," + std::to_string(i % 2);
           });
  };
  for (const char* name : {"patient_id", "subject", "confidence"}) {
    EXPECT_THAT(refused("a.csv", table(name, "f")),
                HasSubstr("would be positions of the sequence, among 12 columns such as 'f0'"));
    EXPECT_THAT(refused("a.csv", table(name, "0.")), HasSubstr("among 12 columns"));
  }
  EXPECT_THAT(refused("a.csv", table("kfold", "f")), HasSubstr("does it name the split?"));
  EXPECT_THAT(refused("a.csv", table("class", "f")), HasSubstr("task.label=NAME"));
  EXPECT_THAT(refused("a.csv", table("class", "f"), "label = \"label\""),
              HasSubstr("is it another label, or a prediction of it?"));
  for (const auto& [first, other] : std::vector<std::pair<std::string, std::string>>{
           {"f12", "f"}, {"F12", "f"}, {"lag", "lag-"}, {"x", "x."}, {"1.00", "0."}, {"-1", ""}}) {
    EXPECT_THAT(doubted("a.csv", table(first, other)), Not(HasSubstr("positions"))) << first;
  }
}

TEST_F(OwnFiles, ColumnsOfSeveralFilesAreMatchedByName) {
  const std::string rows = rows_of(30, wide_row);
  const auto error_with = [&](const std::string& header, const auto& row) {
    return error_of([&] {
      imported({file("train.csv", "a,b,label\n" + rows),
                file("test.csv", header + "\n" + rows_of(20, row))},
               "standardize = false");
    });
  };
  const auto turned = [](int i) {
    return std::to_string(i % 2) + ",5," + std::to_string(i) + ".5";
  };
  EXPECT_EQ(error_with("label,b,a", turned), "");
  const Dataset data = Dataset::open(root_.path("own"));
  EXPECT_EQ(std::bit_cast<float>(tokens(data.split("test"), 3)[0]), 3.5f);
  EXPECT_EQ(std::bit_cast<float>(tokens(data.split("test"), 3)[1]), 5.0f);
  EXPECT_THAT(error_with("a,g,label", wide_row),
              HasSubstr("test.csv:1: has no column 'b'; expected the columns of "));
  const auto longer = [](int i) { return "7," + wide_row(i); };
  EXPECT_THAT(
      error_with("n,a,b,label", longer),
      HasSubstr("has the column 'n', which " + root_.path("train.csv:1") + " does not have"));
  EXPECT_THAT(error_of([&] {
                imported({file("train.jsonl", rows_of(30, text_row)),
                          file("test.jsonl", R"({"review": "x", "label": "yes"})")});
              }),
              HasSubstr("has no column 'text'"));
}

TEST_F(OwnFiles, AKeyOfALaterRowIsNotDropped) {
  const auto late = [](const std::string& more) {
    return rows_of(25, text_row) + R"({"text": "x", "label": "no", )" + more + "}\n";
  };
  EXPECT_THAT(refused("a.jsonl", late(R"("split": "test")")),
              HasSubstr("a.jsonl:26: has the column 'split', which the first row does not have"));
  EXPECT_EQ(refused("a.jsonl", late(R"("comment": "odd")")), "");
}

TEST_F(OwnFiles, AColumnThatNamesTheSplitUnderAnotherNameIsRefused) {
  const auto with = [](const std::string& name, const std::string& a, const std::string& b) {
    return "text,label," + name + "\n" + rows_of(30, [&](int i) {
             return "t" + std::to_string(i) + "," + std::to_string(i % 2) + "," + (i < 20 ? a : b);
           });
  };
  for (const char* name : {"set", "partition", "subset", "fold", "is_test"}) {
    EXPECT_THAT(refused("a.csv", with(name, "0", "1")),
                HasSubstr("is not read: does it name the split?"));
  }
  EXPECT_THAT(refused("a.csv", with("part", "train", "validation")),
              AllOf(HasSubstr("column 'part' is not read, and names splits"),
                    HasSubstr("--set task.split=part")));
  EXPECT_EQ(refused("a.csv", with("part", "train", "third")), "");
  EXPECT_EQ(refused("a.csv", with("set", "train", "test"), "split = \"set\""), "");
}

TEST_F(OwnFiles, AMaskThatIsNotReadIsRefused) {
  const auto row = [](int i) { return tokens_row("5, 0", i, ", \"attention_mask\": [1, 0]"); };
  EXPECT_THAT(refused("a.jsonl", rows_of(30, row)),
              HasSubstr("column 'attention_mask' is not read: does it say which positions"));
}

TEST_F(OwnFiles, AMissingShardIsNamed) {
  const auto shard = [&](const std::string& name) { return file(name, rows_of(30, text_row)); };
  const std::string first = shard("train-00000-of-00002.jsonl");
  EXPECT_THAT(error_of([&] {
                imported({first, shard("test-00000-of-00001.jsonl")});
              }),
              HasSubstr("train-...-of-2: only 1 of the 2 files are there"));
  EXPECT_THAT(error_of([&] {
                imported({shard("train-0.jsonl"), shard("train-2.jsonl"), shard("test.jsonl")});
              }),
              HasSubstr("number 1 is missing among 2 files numbered 0 to 2"));
  const auto from = [&](const std::string& name, int first) {
    return file(name, rows_of(30, [first](int i) { return text_row(first + i); }));
  };
  for (const std::string before : {"train_size", "train_19"}) {
    EXPECT_NO_THROW(imported(
        {from(before + "1.jsonl", 0), from(before + "3.jsonl", 30), from("test.jsonl", 60)}));
  }
}

TEST_F(OwnFiles, OneOddNumberDoesNotTurnTokensIntoValues) {
  const auto with = [](const std::string& name, const std::string& odd) {
    return rows_of(30, [&](int i) {
      const std::string last = i == 4 ? odd : std::to_string(i);
      return json_row("\"" + name + "\": [3, " + last + ", 7]", i);
    });
  };
  EXPECT_THAT(refused("a.jsonl", with("tokens", "-1")),
              HasSubstr("a.jsonl:5: a token is -1; expected whole numbers from 0 to 16777215"));
  EXPECT_THAT(refused("a.jsonl", with("input_ids", "3.0")), HasSubstr("a token is 3.0"));
  EXPECT_THAT(refused("a.jsonl", with("tokens", "9223372036854775808")),
              HasSubstr("a token is 9223372036854775808"));
  EXPECT_THAT(doubted("a.jsonl", with("x", "1.5")),
              HasSubstr("are read as values because of 1 of 90 that cannot be token ids, the first "
                        "in " +
                        root_.path("a.jsonl:5")));
  EXPECT_THAT(doubted("a.jsonl", with("x", "1.5"), "input = \"values\""),
              Not(HasSubstr("token ids")));
}

TEST_F(OwnFiles, PaddingWithANegativeNumberIsNamed) {
  const auto row = [](int i) {
    return json_row("\"x\": [3, " + std::to_string(i) + (i % 3 ? ", 4, -100]" : ", -100, -100]"),
                    i);
  };
  EXPECT_THAT(refused("a.jsonl", rows_of(30, row)),
              HasSubstr("cut -100 from the ends of the sequences if it is padding"));
  EXPECT_EQ(refused("a.jsonl", rows_of(30, row), "input = \"values\""), "");
}

TEST_F(OwnFiles, ListsInTheCellsOfATableAreNumbers) {
  const auto row = [](int i) {
    return "\"[1, 2, " + std::to_string(i) + "]\"," + std::to_string(i % 2);
  };
  const Dataset data = imported({file("a.csv", "seq,label\n" + rows_of(30, row))});
  EXPECT_EQ(task_->shape().vocabulary, 31);
  EXPECT_EQ(read(data, "columns"), "'seq'");
  const auto plain = [](int i) { return "3 " + std::to_string(i) + "," + std::to_string(i % 2); };
  (void)imported({file("a.csv", "tokens,label\n" + rows_of(30, plain))});
  EXPECT_EQ(task_->shape().vocabulary, 31);
  const auto channels = [](int i) {
    return "\"[[1, 2], [0.5, " + std::to_string(i) + "]]\"," + std::to_string(i % 2);
  };
  (void)imported({file("a.csv", "seq,label\n" + rows_of(30, channels))});
  EXPECT_EQ(task_->shape().values.value().channels, 2);
  const auto cut = [](int i) { return "\"[1 2 ... 9]\"," + std::to_string(i % 2); };
  EXPECT_THAT(refused("a.csv", "seq,label\n" + rows_of(30, cut)),
              HasSubstr("a.csv:2: '...' is not a number"));
  // One cell that is no list makes all of them text.
  (void)imported({file("a.csv", "seq,label\n" + rows_of(30, row) + "words,0\n")});
  EXPECT_EQ(task_->shape().vocabulary, 257);
}

TEST_F(OwnFiles, LabelsThatMayMeanTheSameOrNothingAreInDoubt) {
  const auto with = [](const std::vector<std::string>& labels) {
    return "text,label\n" + rows_of(60, [&](int i) {
             return "t" + std::to_string(i) + ",\"" +
                    labels[static_cast<size_t>(i) % labels.size()] + "\"";
           });
  };
  EXPECT_THAT(doubted("a.csv", with({"Yes", "no", "yes"})),
              HasSubstr("the labels 'Yes' and 'yes' differ only in letter case or spaces"));
  EXPECT_THAT(doubted("a.csv", with({"a", "b", " a"})), HasSubstr("the labels ' a' and 'a'"));
  for (const char* missing : {"nan", "NaN", "#N/A", "-1", " "}) {
    EXPECT_THAT(doubted("a.csv", with({"2", "3", missing})), HasSubstr("mark what is missing"));
  }
  EXPECT_EQ(doubted("a.csv", with({"-1", "1"})).find("missing"), std::string::npos);
  EXPECT_THAT(refused("a.csv", with({"a", "b", std::string(1000, 'c')})),
              HasSubstr("a.csv:4: the label has 1000 bytes"));
  EXPECT_THAT(
      refused("a.csv",
              "text,label\n" + rows_of(30, [](int i) { return "t," + std::to_string(i) + ".5"; })),
      HasSubstr("they are real numbers"));
  const Dataset same = imported({file("a.csv", with({"1.0", "0", "1"}))});
  EXPECT_THAT(task_->label_names(same), ElementsAre("0", "1"));
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
  EXPECT_THAT(doubts_of(data), HasSubstr("class 'b' is 50% of test and 4% of train"));
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
    return std::to_string(i) + ",t" + std::to_string(i) + "," + std::to_string(i % 2);
  };
  const Dataset data = imported({file("test.csv", "id,text,label\n" + rows_of(30, row))});
  EXPECT_EQ(read(data, "columns"), "'text'");
  EXPECT_EQ(read(data, "labels"), "'label'");
  EXPECT_EQ(read(data, "ignored"), "'id'");
  EXPECT_EQ(read(data, "splits"),
            "test was drawn from train by task.split_seed=0; val was drawn from train by "
            "task.split_seed=0");
  EXPECT_THAT(doubts_of(data), HasSubstr("test.csv is the only file, and was split into"));
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

TEST_F(OwnFiles, ColumnsThatNameGroupsAreKnownByTheirValues) {
  // 20 subjects of 10 examples each; the label is that of the subject, or of the example.
  const auto doubts_with = [&](const std::string& name, bool of_subject, bool in_order) {
    RandomStream random(7);
    return doubted("all.jsonl", rows_of(200, [&](int i) {
                     const int subject = i % 20;
                     const int label =
                         of_subject ? (in_order ? subject / 10 : subject * 7 % 20 % 2) : i / 20 % 2;
                     return "{\"x\": [0.5, " + std::to_string(random.below(100000)) + "], \"" +
                            name + "\": " + std::to_string(subject) +
                            ", \"label\": " + std::to_string(label) + "}";
                   }));
  };
  const auto shared = HasSubstr("20 of the 20 test examples have a value there that training");
  EXPECT_THAT(doubts_with("who", true, false), shared);
  EXPECT_THAT(doubts_with("subj", false, false), shared);
  EXPECT_THAT(doubts_with("who", false, false), Not(shared)) << "perhaps the hour";
  EXPECT_THAT(doubts_with("who", true, true), Not(shared)) << "the label is made from it";
  EXPECT_THAT(doubts_with("fine_label", true, false), Not(shared));
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
  EXPECT_EQ(task_->reading(longer).at(0).value, "values, 3 positions");
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
