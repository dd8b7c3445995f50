#include "io/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/scratch_folder.h"

namespace lra {
namespace {

using testing::HasSubstr;

std::string parse_error(std::string_view text, const JsonLimits& limits = {}) {
  return error_of([&] { parse_json(text, "a.json", limits); });
}

TEST(Json, KeepsKeyOrderAndValues) {
  const std::string text = R"({"z":1,"a":[true,null,-2.5,"é"],"m":{"k":18446744073709551615}})";
  EXPECT_EQ(json_text(parse_json(text, "a")), text);
}

TEST(Json, ErrorsNameTheFile) {
  for (const char* bad : {"", "{", "[1,]", "{\"a\" 1}", "nul", "\"\\x\"", "1 2", "{\"a\":1}}"}) {
    EXPECT_THAT(parse_error(bad), HasSubstr("a.json: not valid JSON at byte")) << bad;
  }
}

TEST(Json, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(parse_error("\"\xff\xfe\""), HasSubstr("not valid JSON"));
  EXPECT_THAT(parse_error(std::string("\"a\0b\"", 5)), HasSubstr("not valid JSON"));
}

TEST(Json, RefusesRepeatedKeys) {
  EXPECT_THAT(parse_error(R"({"a":{"k":1,"k":2}})"), HasSubstr("'k' appears twice"));
  EXPECT_EQ(parse_error(R"([{"k":1},{"k":2}])"), "");
}

TEST(Json, RefusesDeepNestingOfAnyLength) {
  EXPECT_THAT(parse_error(std::string(1000000, '[')), HasSubstr("nested deeper than 64 levels"));
  EXPECT_EQ(parse_error("[[1]]", {.max_depth = 2}), "");
  EXPECT_THAT(parse_error("[[1]]", {.max_depth = 1}), HasSubstr("nested deeper"));
}

TEST(Json, RefusesTextAndObjectsOverTheLimit) {
  EXPECT_THAT(parse_error("[1, 2, 3]", {.max_bytes = 8}), HasSubstr("at most 8 B"));
  EXPECT_EQ(parse_error(R"({"a":1,"b":2})", {.max_keys = 2}), "");
  EXPECT_THAT(parse_error(R"({"a":1,"b":2,"c":3})", {.max_keys = 2}), HasSubstr("more than 2"));
}

TEST(Json, ReadsManyKeysInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  text.back() = '}';
  EXPECT_EQ(parse_json(text, "a").size(), 200000u);
}

TEST(Json, MessagesQuoteForeignTextShortAndWithoutControls) {
  const std::string message = parse_error("[\"" + std::string(5000, 'x') + "\x1b");
  EXPECT_LT(message.size(), 300u);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST(Json, ZeroBytesAreErrors) {
  for (const std::string& text : {std::string("{}\0", 3), std::string("{\"a\":\"\0\"}", 8)}) {
    EXPECT_THAT(error_of([&] { parse_json(text, "a.json"); }), HasSubstr("a zero byte"));
  }
}

TEST(Json, NumbersTooLargeForADoubleAreErrors) {
  EXPECT_THAT(parse_error("[1e999]"), HasSubstr("not valid JSON"));
}

TEST(JsonText, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(json_text(Json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

TEST(JsonFile, ThatIsMissingIsAnError) {
  EXPECT_THAT(error_of([] { read_json_file("/no/such.json"); }), HasSubstr("/no/such.json"));
}

class JsonFieldsTest : public testing::Test {
 protected:
  const Json json_ = parse_json(
      R"({"flag":true,"n":-3,"big":18446744073709551615,"x":0.5,"s":"t","l":["a","b"],
          "o":{"inner":"deep"},"null":null,"nan":"nan","inf":"-inf","mixed":["a",1]})",
      "a.json");
  JsonFields fields_{json_, "a.json", "top"};
};

TEST_F(JsonFieldsTest, ReadEveryType) {
  EXPECT_EQ(fields_.get<bool>("flag"), true);
  EXPECT_EQ(fields_.get<int64_t>("n"), -3);
  EXPECT_EQ(fields_.get<uint64_t>("big"), UINT64_MAX);
  EXPECT_EQ(fields_.get<double>("x"), 0.5);
  EXPECT_EQ(fields_.get<double>("n"), -3);
  EXPECT_EQ(fields_.get<std::string>("s"), "t");
  EXPECT_EQ(fields_.get<std::vector<std::string>>("l"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields_.object("o").get<std::string>("inner"), "deep");
  EXPECT_EQ(fields_.array("l").size(), 2u);
  EXPECT_TRUE(std::isnan(fields_.get<double>("nan")));
  EXPECT_EQ(fields_.get<double>("inf"), -INFINITY);
}

TEST_F(JsonFieldsTest, NameTheFieldOfAWrongType) {
  EXPECT_EQ(error_of([&] { fields_.get<int64_t>("s"); }),
            "a.json: field 'top.s' is a string; expected an integer of 64 bits");
  EXPECT_THAT(error_of([&] { fields_.get<std::string>("n"); }), HasSubstr("expected a string"));
  EXPECT_THAT(error_of([&] { fields_.get<bool>("n"); }), HasSubstr("expected true or false"));
  EXPECT_THAT(error_of([&] { fields_.get<double>("s"); }), HasSubstr("expected a number"));
  EXPECT_THAT(error_of([&] { fields_.get<std::vector<std::string>>("mixed"); }),
              HasSubstr("expected an array of strings"));
  EXPECT_THAT(error_of([&] { fields_.object("s"); }), HasSubstr("expected an object"));
  EXPECT_THAT(error_of([&] { fields_.array("o"); }), HasSubstr("expected an array"));
  EXPECT_THAT(error_of([&] { fields_.object("o").get<bool>("inner"); }),
              HasSubstr("'top.o.inner'"));
}

TEST_F(JsonFieldsTest, RefuseIntegersThatDoNotFit) {
  EXPECT_THAT(error_of([&] { fields_.get<int64_t>("big"); }),
              HasSubstr("is 18446744073709551615; expected an integer"));
  EXPECT_THAT(error_of([&] { fields_.get<uint64_t>("n"); }), HasSubstr("is -3"));
  EXPECT_THAT(error_of([&] { fields_.get<int64_t>("x"); }), HasSubstr("is a number"));
}

TEST_F(JsonFieldsTest, MissingFieldsAreErrorsOrNothing) {
  EXPECT_THAT(error_of([&] { fields_.get<bool>("gone"); }), HasSubstr("'top.gone' is missing"));
  EXPECT_FALSE(fields_.find<bool>("gone").has_value());
  EXPECT_FALSE(fields_.find<bool>("null").has_value());
  EXPECT_FALSE(fields_.find_object("gone").has_value());
  EXPECT_EQ(fields_.find<bool>("flag"), true);
  EXPECT_THROW(fields_.find<bool>("s"), Error);
}

TEST(JsonFields, FinishRefusesFieldsNobodyAskedFor) {
  const Json json = parse_json(R"({"steps":1,"stesp":2})", "a");
  JsonFields fields(json, "a");
  fields.get<int64_t>("steps");
  EXPECT_THAT(error_of([&] { fields.finish(); }),
              HasSubstr("unknown field 'stesp'; did you mean 'steps'?"));
  fields.get<int64_t>("stesp");
  EXPECT_NO_THROW(fields.finish());
}

TEST(JsonFields, WantAnObject) {
  const Json json = parse_json("[1]", "a");
  EXPECT_EQ(error_of([&] { JsonFields(json, "a"); }), "a: an array; expected an object");
}

}  // namespace
}  // namespace lra
