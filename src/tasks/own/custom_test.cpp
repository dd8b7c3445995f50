#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "tasks/all.h"
#include "tasks/own/test_own_data.h"

namespace lra::tasks {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(OwnData, OfOneFileIsSplitByTheSeed) {
  const std::string path = file("all.jsonl", rows_of(100, text_row));
  const Dataset data = imported({path});
  EXPECT_EQ(data.split("train").size(), 80);
  EXPECT_EQ(data.split("val").size(), 10);
  EXPECT_EQ(data.split("test").size(), 10);
  EXPECT_THAT(task_->label_names(data), ElementsAre("no", "yes"));
  const TaskShape shape = task_->shape();
  EXPECT_EQ(shape.length, 10);
  EXPECT_EQ(shape.vocabulary, 257);
  EXPECT_EQ(shape.num_classes, 2);
  EXPECT_TRUE(shape.has_padding);
  EXPECT_EQ(imported({path}).hash(), data.hash());
  EXPECT_NE(imported({path}, "split_seed = 1").hash(), data.hash());
}

TEST_F(OwnData, TextIsBytesPlusOne) {
  const Dataset data =
      imported({file("train.jsonl", rows_of(20, text_row)), file("val.jsonl", rows_of(4, text_row)),
                file("test.jsonl", R"({"text": "é", "label": "yes"})")});
  EXPECT_THAT(tokens(data.split("test"), 0), ElementsAre(0xC3 + 1, 0xA9 + 1));
  EXPECT_EQ(data.split("test").label(0), 1);
}

TEST_F(OwnData, WholeNumbersAreTokensAndZeroIsNoPadding) {
  const Dataset data = imported({file("all.jsonl", rows_of(20, [](int i) {
                                        return R"({"tokens": [0, 70000, )" + std::to_string(i) +
                                               R"(], "label": )" + std::to_string(10 * (i % 3)) +
                                               "}";
                                      }))});
  const TaskShape shape = task_->shape();
  EXPECT_EQ(shape.vocabulary, 70002);
  EXPECT_FALSE(shape.has_padding);
  EXPECT_FALSE(shape.values.has_value());
  EXPECT_EQ(data.manifest().token_bytes, 4);
  EXPECT_THAT(task_->label_names(data), ElementsAre("0", "10", "20"));
  const std::vector<int32_t> first = tokens(data.split("train"), 0);
  EXPECT_EQ(first[0], 1);
  EXPECT_EQ(first[1], 70001);
}

TEST_F(OwnData, ValuesAreStandardizedByTheTrainingSplitAlone) {
  const auto row = [](int value) {
    return "{\"values\": [[" + std::to_string(value) + ", 5.5], [" + std::to_string(-value) +
           ", 5.5]], \"label\": " + std::to_string(value % 2) + "}";
  };
  const auto odd = [&](int i) { return row(1 + i); };
  const Dataset data =
      imported({file("train.jsonl", rows_of(10, odd)), file("val.jsonl", rows_of(4, odd)),
                file("test.jsonl", row(1000) + "\n")});
  const TaskShape shape = task_->shape();
  ASSERT_TRUE(shape.values.has_value());
  EXPECT_EQ(shape.values->channels, 2);
  EXPECT_EQ(shape.length, 2);
  const std::vector<int32_t> words = tokens(data.split("test"), 0);
  ASSERT_EQ(words.size(), 4U);
  // The mean of v and -v is 0, that of their squares the mean of 1, 4, ... 100.
  EXPECT_FLOAT_EQ(std::bit_cast<float>(words[0]), static_cast<float>(1000 / std::sqrt(38.5)));
  EXPECT_EQ(std::bit_cast<float>(words[1]), 0.0f) << "a channel that never varies";
  EXPECT_EQ(words[2], std::bit_cast<int32_t>(-std::bit_cast<float>(words[0])));
}

TEST_F(OwnData, ShuffledPositionsKeepTheirChannelsTogether) {
  const Dataset data =
      imported({file("all.jsonl", rows_of(20,
                                          [](int i) {
                                            std::string values;
                                            for (int k = 0; k < 30; ++k) {
                                              const std::string number = std::to_string(k);
                                              values += (k ? ", [" : "[") + number + ".5, -" +
                                                        number + ".5]";
                                            }
                                            return "{\"values\": [" + values +
                                                   "], \"label\": " + std::to_string(i % 2) + "}";
                                          }))},
               "standardize = false");
  const Split train = data.split("train");
  const std::vector<int32_t> before = tokens(train, 0),
                             after = tokens(train.with_shuffled_tokens(), 0);
  EXPECT_NE(before, after);
  for (size_t i = 0; i < after.size(); i += 2) {
    EXPECT_EQ(std::bit_cast<float>(after[i]), -std::bit_cast<float>(after[i + 1]));
  }
}

TEST_F(OwnData, PairsHaveTwoSequences) {
  const Dataset data =
      imported({file("all.csv", "sentence1,sentence2,label\n" + rows_of(20, [](int i) {
                                  return "a,b" + std::to_string(i) + "," + std::to_string(i % 2);
                                }))});
  EXPECT_EQ(task_->shape().num_towers, 2);
  EXPECT_THAT(tokens(data.split("train"), 0, 0), ElementsAre('a' + 1));
}

TEST_F(OwnData, ColumnNamesMayHaveAnyCaseAndSpacesAround) {
  const auto row = [](int i) {
    return "example " + std::to_string(i) + "," + (i % 2 ? "yes" : "no") + "," +
           (i < 20   ? "train"
            : i < 25 ? "val"
                     : "test");
  };
  const std::string rows = rows_of(30, row);
  const Dataset data =
      imported({file("all.csv", "Text, LABEL,Split\n" + rows)}, "label = \"label\"");
  EXPECT_EQ(data.split("train").size(), 20);
  EXPECT_THAT(task_->label_names(data), ElementsAre("no", "yes"));
  // Neither of two names that differ in case alone is chosen silently.
  EXPECT_THAT(refused("a.csv", "text,Text,label\n" + rows, "sequences = \"TEXT\""),
              HasSubstr("has no column 'TEXT'"));
}

TEST_F(OwnData, TextWithoutAHeaderIsReadWhereColumnsHaveNumbers) {
  const std::string rows = rows_of(
      30, [](int i) { return "example " + std::to_string(i) + "," + (i % 2 ? "yes" : "no"); });
  const std::string error = refused("a.csv", rows);
  EXPECT_THAT(error, HasSubstr("a.csv: has no column of labels"));
  EXPECT_THAT(error, HasSubstr("--set task.sequences=c0 --set task.label=c1"));
  const Dataset data = imported({file("a.csv", rows)}, "sequences = \"c0\"\nlabel = \"c1\"");
  EXPECT_EQ(data.split("train").size() + data.split("val").size() + data.split("test").size(), 30);
  // With a header the only other column holds the text, whatever its name.
  EXPECT_EQ(imported({file("a.csv", "utterance,label\n" + rows)}).hash(), data.hash());
}

TEST_F(OwnData, ExportedFilesGiveTheSameData) {
  for (const char* kind : {"text", "tokens", "values"}) {
    const auto row = [&](int i) {
      const std::string number = std::to_string(i);
      const std::string sequence = kind == std::string("text")     ? "\"x" + number + "\""
                                   : kind == std::string("tokens") ? "[1, " + number + "]"
                                                                   : "[0.1, " + number + ".7]";
      return "{\"x\": " + sequence + ", \"y\": " + std::to_string(i % 2) + "}";
    };
    const Dataset data = imported({file("all.jsonl", rows_of(40, row))});
    const std::string hash = data.hash(), official = root_.path(std::string("out-") + kind);
    task_->export_official(data, official);
    EXPECT_EQ(imported({official}, "standardize = false").hash(), hash) << kind;
  }
}

TEST_F(OwnData, CheckPassesAndBaselinesBeginWithTheMajorityClass) {
  const Dataset data = imported({file("all.jsonl", rows_of(60, text_row))});
  std::string labels;
  for (const checks::Fact& fact : task_->check(data)) {
    EXPECT_TRUE(fact.ok) << fact.name << fact.detail;
    if (fact.name == "labels of train") labels = fact.value;
  }
  EXPECT_THAT(labels, ::testing::MatchesRegex("no: [0-9.]+%, yes: [0-9.]+%"));
  const auto baselines = task_->baselines(data);
  ASSERT_EQ(baselines.size(), 5U);
  EXPECT_EQ(baselines[0].name, "majority");
  EXPECT_THAT(task_->render(data.split("train"), 0), HasSubstr("example"));
}

TEST_F(OwnData, SettingsOfAnotherDataSetAreRefused) {
  const Dataset data = imported({file("all.jsonl", rows_of(60, text_row))});
  ConfigTable settings = task_on_data("custom", root_.path("own")).settings;
  settings.set("classes", {int64_t{3}, ""});
  EXPECT_THAT(error_of([&] { kCustomTask.make(settings)->refuse_other_settings(data); }),
              HasSubstr("its classes are 2; expected 3"));
}

TEST_F(OwnData, SettingsOfTheImportAreNotThoseOfARun) {
  (void)imported({file("all.jsonl", rows_of(60, text_row))});
  const ConfigTable stated = task_on_data("custom", root_.path("own")).settings;
  const auto error_with = [&](const char* name, decltype(ConfigValue::value) value) {
    ConfigTable given = kCustomTask.resolve(stated);
    given.set(name, {std::move(value), ""});
    return error_of([&] { refuse_import_settings(kCustomTask, stated, given); });
  };
  EXPECT_THAT(error_with("label", std::string("other")),
              HasSubstr("imported with label = \"\", not label = \"other\""));
  EXPECT_THAT(error_with("split_seed", int64_t{1}),
              HasSubstr("task.split_seed: has an effect only"));
  for (const char* name : {"sequences", "split"}) {
    EXPECT_THAT(error_with(name, std::string("x")), HasSubstr("only at the import")) << name;
  }
  EXPECT_THAT(error_with("standardize", false), HasSubstr("only at the import"));
  EXPECT_EQ(error_with("length", int64_t{5}), "");
  EXPECT_EQ(error_with("split_seed", int64_t{0}), "");
}

// Someone who forges data and hashes alike gets an error, not an embedding out of bounds.
TEST_F(OwnData, AnIdThatNoInt32HoldsIsRefused) {
  Manifest manifest;
  manifest.task = "custom";
  manifest.task_version = kCustomTask.version;
  manifest.source = "imported";
  manifest.token_bytes = 4;
  manifest.token_offset = 1;
  manifest.settings = {
      {"input", "tokens"}, {"vocabulary", "70000"}, {"longest", "2"}, {"length", "2"}};
  for (const uint32_t id :
       {uint32_t{69998}, uint32_t{69999}, uint32_t{INT32_MAX}, UINT32_MAX - 1}) {
    const std::string folder = root_.path("forged" + std::to_string(id));
    DatasetWriter writer(folder, manifest, 0);
    writer.begin_split("train");
    const std::vector<uint32_t> ids = {id, 5};
    writer.add(0, std::vector<std::span<const uint32_t>>{ids});
    writer.finish();
    const auto task = kCustomTask.make(task_on_data("custom", folder).settings);
    const std::string error = error_of([&] { open_dataset(kCustomTask, *task, folder); });
    EXPECT_EQ(error.empty(), id == 69998) << id << error;
  }
}

TEST_F(OwnData, IsFoundUnderItsNameInTheDataRoot) {
  (void)imported({file("all.jsonl", rows_of(60, text_row))});
  const TaskOnData by_name = task_on_data("custom:own", root_.path(""));
  const TaskOnData by_folder = task_on_data("custom", root_.path("own"));
  EXPECT_EQ(by_name.name, "custom:own");
  EXPECT_EQ(by_folder.name, "custom:own");
  EXPECT_EQ(canonical_text(by_name.settings), canonical_text(by_folder.settings));
  EXPECT_EQ(&find_task("custom:own"), &kCustomTask);
  EXPECT_THAT(error_of([&] { (void)find_task("custom:../x"); }), HasSubstr("unknown task"));
  EXPECT_THAT(error_of([&] { (void)task_on_data("custom", root_.path("")); }),
              AllOf(HasSubstr("not a prepared dataset"), HasSubstr("has 'custom:own'")));
  std::filesystem::rename(root_.path("own"), root_.path("custom"));
  EXPECT_EQ(task_on_data("custom", root_.path("")).name, "custom:custom");
}

TEST_F(OwnData, OfAMistypedNameIsAnsweredWithTheNamesThereAre) {
  (void)imported({file("all.jsonl", rows_of(60, text_row))});
  std::filesystem::create_directory(root_.path("empty"));
  const auto error_for = [&](const std::string& name) {
    const TaskOnData on = task_on_data("custom:" + name, root_.path(""));
    const auto task = kCustomTask.make(on.settings);
    return error_of([&] { (void)prepare_data(kCustomTask, *task, root_.path(""), true); });
  };
  EXPECT_THAT(error_for("onw"), AllOf(HasSubstr("there is no data set 'custom:onw'"),
                                      HasSubstr("did you mean 'custom:own'?")));
  EXPECT_THAT(error_for("something"),
              AllOf(HasSubstr("one of 'custom:own'"), HasSubstr("data import custom FILE")));
}

TEST_F(OwnData, MistakesAreNamedWithFileAndRow) {
  const std::string good = rows_of(20, text_row);
  const auto row_21 = [&](const std::string& row) { return refused("a.jsonl", good + row + "\n"); };
  EXPECT_THAT(row_21("{"), HasSubstr("a.jsonl row 21: is not JSON"));
  EXPECT_THAT(row_21(R"({"text": "x"})"), HasSubstr("a.jsonl row 21: the label is missing"));
  EXPECT_THAT(row_21(R"({"text": "", "label": "no"})"), HasSubstr("row 21: a sequence is empty"));
  EXPECT_THAT(refused("a.csv", "text,label\na,0\nb\n"), HasSubstr("Expected 2 columns, got 1"));
  EXPECT_THAT(refused("a.csv", "text,label\na,0\n", "sequences = \"label\"\nlabel = \"label\""),
              HasSubstr("a.csv: column 'label' is named twice"));
  EXPECT_THAT(refused("a.jsonl", good, "label = \"tag\""), HasSubstr("has no column 'tag'"));
  EXPECT_THAT(refused("a.dat", "x"), HasSubstr("unknown ending, and its bytes are text"));
  EXPECT_FALSE(std::filesystem::exists(root_.path("own"))) << "a refused import leaves nothing";
  for (const auto& entry : std::filesystem::directory_iterator(root_.path(""))) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".lra-import")) << entry.path();
  }
}

TEST_F(OwnData, MistakesOfTheWholeAreRefused) {
  const std::string good = rows_of(20, text_row);
  EXPECT_THAT(refused("a.jsonl", rows_of(20, [](int) { return text_row(0); })),
              HasSubstr("all examples have the label 'no'"));
  EXPECT_THAT(refused("a.jsonl", rows_of(4, text_row)), HasSubstr("10 or more to draw"));
  EXPECT_THAT(
      error_of([&] {
        imported(
            {file("train.jsonl", good), file("test.jsonl", R"({"text": "x", "label": "Yes"})")});
      }),
      HasSubstr("test.jsonl row 1: has the label 'Yes', which train does not have; expected one of "
                "'no' and 'yes'; write labels the same way"));
}

TEST_F(OwnData, DrawnSplitsLeaveEveryClassInTrain) {
  const auto of_class = [](int i) {
    return R"({"text": "t)" + std::to_string(i) + R"(", "label": "c)" + std::to_string(i % 18) +
           "\"}";
  };
  const std::string test =
      file("test.jsonl", rows_of(40, [&](int i) { return of_class(1000 + 10 + i); }));
  const Dataset pairs = imported({file("train.jsonl", rows_of(36, of_class)), test});
  const auto trained = [&](const Dataset& data) {
    std::set<int32_t> labels;
    for (int64_t i = 0; i < data.split("train").size(); ++i) {
      labels.insert(data.split("train").label(i));
    }
    return labels.size();
  };
  EXPECT_EQ(pairs.split("val").size(), 3);
  EXPECT_EQ(trained(pairs), 18U);
  const std::string single = error_of([&] {
    imported({file("train.jsonl", rows_of(18, of_class)), test});
  });
  EXPECT_THAT(single, HasSubstr("split val: cannot be drawn: train has a single example of each"));
  // Nine of ten in one class: the other keeps its share of val.
  const auto uneven = [](int i) {
    return R"({"text": "t)" + std::to_string(i) + R"(", "label": ")" + (i % 10 ? "a" : "b") + "\"}";
  };
  const Dataset data = imported({file("all.jsonl", rows_of(200, uneven))});
  for (const char* name : {"val", "test"}) {
    int64_t rare = 0;
    for (int64_t i = 0; i < data.split(name).size(); ++i) rare += data.split(name).label(i);
    EXPECT_EQ(rare, 2) << name;
  }
}

TEST_F(OwnData, OfAThousandChannelsIsRead) {
  const auto row = [](int i) {
    std::string values;
    for (int c = 0; c < 1000; ++c) {
      values += (c ? "," : "") + std::to_string((i * i * 31 + c * (i + 3)) % 1009) + ".5";
    }
    return "{\"x\": [[" + values + "], [" + values + "]], \"label\": " + std::to_string(i % 2) +
           "}";
  };
  const Dataset data = imported({file("all.jsonl", rows_of(40, row))});
  EXPECT_EQ(task_->shape().values.value().channels, 1000);
  EXPECT_EQ(data.split("train").words_per_token(), 1000);
}

TEST_F(OwnData, AColumnNamesTheSplit) {
  const Dataset data = imported({file("all.csv", "text,label,split\n" + rows_of(30, [](int i) {
                                                   return "t" + std::to_string(i) + "," +
                                                          std::to_string(i % 2) + "," +
                                                          (i < 20   ? "train"
                                                           : i < 25 ? "validation"
                                                                    : "test");
                                                 }))});
  EXPECT_EQ(data.split("train").size(), 20);
  EXPECT_EQ(data.split("val").size(), 5);
  EXPECT_EQ(data.split("test").size(), 5);
}

}  // namespace
}  // namespace lra::tasks
