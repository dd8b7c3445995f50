#include "analysis/span.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <set>

#include "analysis/examples.h"
#include "base/scratch_folder.h"
#include "base/stop_flag.h"
#include "data/contact_sheet.h"
#include "data/drawn_examples.h"
#include "training/run/make_model.h"
#include "training/run/test_runs.h"

namespace lra::analysis {
namespace {

using training::OneThread;
using training::tiny_run;

struct SpanCase {
  SpanCase(const std::string& name, const std::vector<std::string>& sets)
      : run(tiny_run(sets, name)),
        model(training::make_model(run, run.make_task()->shape())),
        attention(model, run.model_config, run.mixer_spec(), name) {}
  // One span of every example length.
  SpanResult of(const std::vector<int64_t>& lengths, int64_t side = 0) const {
    SpanSums sums(attention, side);
    for (const int64_t length : lengths) sums.add(at::ones({1, length}, at::kInt));
    return sums.result();
  }
  // Scores of zero: every token is seen alike.
  void make_uniform() {
    const at::NoGradGuard no_grad;
    for (auto& [name, parameter, group] : model.parameter_list()) {
      if (name.ends_with("qkv.weight")) parameter.zero_();
    }
  }
  training::RunConfig run;
  models::SequenceClassifier model;
  AttentionWeights attention;
};

double brute_force(int64_t length, const std::function<double(int64_t, int64_t)>& distance) {
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) sum += distance(i, j);
  }
  return sum / static_cast<double>(length * length);
}

TEST(Span, OfEqualWeightsIsAThirdOfTheLength) {
  EXPECT_DOUBLE_EQ(uniform_span(1024), (1024.0 * 1024 - 1) / (3 * 1024));
  for (const int64_t length : {1, 2, 7, 40}) {
    EXPECT_NEAR(uniform_span(length),
                brute_force(length, [](int64_t i, int64_t j) { return std::abs(i - j); }), 1e-12);
  }
  for (const int64_t side : {1, 2, 5}) {
    const auto pixels = [side](int64_t i, int64_t j) {
      return std::hypot(i / side - j / side, i % side - j % side);
    };
    EXPECT_NEAR(uniform_pixel_span(side), brute_force(side * side, pixels), 1e-12);
  }
}

TEST(Span, OfAModelWithEqualWeightsIsTheUniformOne) {
  const OneThread one_thread;
  for (const char* pooling : {"cls", "mean"}) {
    SpanCase c("transformer", {"model.layers=2", std::string("model.pooling=") + pooling});
    c.make_uniform();
    const SpanResult span = c.of({36, 36}, 6);
    EXPECT_NEAR(span.tokens.mean, (36.0 * 36 - 1) / (3 * 36), 1e-4);
    EXPECT_NEAR(span.tokens.uniform, (36.0 * 36 - 1) / (3 * 36), 1e-12);
    EXPECT_NEAR(span.tokens.deviation, 0, 1e-6);
    EXPECT_NEAR(span.pixels->mean, uniform_pixel_span(6), 1e-5);
    ASSERT_EQ(span.tokens.heads.size(), 2u);
    for (const auto& layer : span.tokens.heads) {
      ASSERT_EQ(layer.size(), 2u);
      for (const double head : layer) EXPECT_NEAR(head, span.tokens.uniform, 1e-4);
    }
    EXPECT_EQ(span.with_cls.has_value(), std::string(pooling) == "cls");
    if (span.with_cls) {
      EXPECT_NEAR(span.with_cls->mean, uniform_span(37), 1e-4);
    }
    EXPECT_NEAR(span.least_row_sum, 1, 1e-5);
    EXPECT_NEAR(span.largest_row_sum, 1, 1e-5);
  }
}

TEST(Span, IsTheMeanOverExamplesOfTheirOwnLengths) {
  const OneThread one_thread;
  SpanCase c("transformer", {"model.pooling=mean"});
  c.make_uniform();
  const SpanResult span = c.of({10, 40});
  EXPECT_NEAR(span.tokens.mean, (uniform_span(10) + uniform_span(40)) / 2, 1e-4);
  EXPECT_NEAR(span.tokens.deviation, (uniform_span(40) - uniform_span(10)) / std::sqrt(2.0), 1e-4);
  EXPECT_DOUBLE_EQ(span.mean_length, 25);
  EXPECT_FALSE(span.pixels.has_value());
}

// Blocks of ten tokens that are seen alike; with CLS the blocks begin before the first token, and
// CLS, in front of the first block, is left out.
TEST(Span, OfBlocksIsThatOfABlock) {
  const OneThread one_thread;
  SpanCase c("local", {"model.pooling=mean", "mixer.block=10"});
  c.make_uniform();
  EXPECT_NEAR(c.of({40}).tokens.mean, uniform_span(10), 1e-5);
  SpanCase with_cls("local", {"model.pooling=cls", "mixer.block=10"});
  with_cls.make_uniform();
  const double expected = (9 * uniform_span(9) + 30 * uniform_span(10)) / 39;
  EXPECT_NEAR(with_cls.of({39}).tokens.mean, expected, 1e-5);
  // A query alone in its block with CLS, and one that is alone.
  SpanCase alone("local", {"model.pooling=cls", "mixer.block=1"});
  EXPECT_EQ(alone.of({20}).tokens.mean, 0);
}

// Both documents of a pair count, empty ones do not, and a stop is answered with nothing.
TEST(Span, ReadsEverySequenceOfTheChosenExamples) {
  const OneThread one_thread;
  const ScratchFolder folder;
  SpanCase c("transformer", {"model.pooling=mean"});
  c.make_uniform();
  const std::vector<uint8_t> four(4, 1), six(6, 2), none;
  const Split split = training::write_split(
      folder.file("data"), {{0, {four, six}}, {1, {none, six}}, {1, {four, four}}});
  const TaskShape shape{.length = 5, .vocabulary = 17, .num_classes = 2, .num_towers = 2};
  int64_t done = 0;
  const auto count = [&](int64_t examples) { done += examples; };
  const auto span = measure_span(c.attention, split, shape, {0, 1}, count);
  EXPECT_EQ(done, 2);
  // The second document is cut to the task's length.
  EXPECT_NEAR(span->mean_length, (4 + 5 + 5) / 3.0, 1e-12);
  EXPECT_NEAR(span->tokens.mean, (uniform_span(4) + 2 * uniform_span(5)) / 3, 1e-5);
  raise_stop_flag(SIGINT);
  EXPECT_FALSE(measure_span(c.attention, split, shape, {0, 1}, count).has_value());
  clear_stop_flag();
}

TEST(Examples, AreDrawnOnceEachAndTheSameAgain) {
  const std::vector<int64_t> drawn = drawn_examples(50, 20);
  EXPECT_EQ(drawn, drawn_examples(50, 20));
  EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()).size(), 20u);
  EXPECT_EQ(drawn_examples(5, 20).size(), 5u);
}

TEST(Examples, OfImagesAreSquareAndWithoutPadding) {
  const TaskShape image{.length = 1024, .vocabulary = 256, .num_classes = 10, .has_padding = false};
  EXPECT_EQ(image_side(image), 32);
  TaskShape other = image;
  other.length = 1000;
  EXPECT_EQ(image_side(other), 0);
  other = image;
  other.has_padding = true;
  EXPECT_EQ(image_side(other), 0);
}

}  // namespace
}  // namespace lra::analysis
