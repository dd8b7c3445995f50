#include "tasks/text/review_tables.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "base/permutation.h"
#include "base/quoted.h"
#include "base/rng.h"
#include "data/python_reader.h"

namespace lra::tasks {
namespace {

constexpr std::array<std::array<std::string_view, 3>, 2> kReviewLabelNames = {
    {{"0", "neg", "negative"}, {"1", "pos", "positive"}}};

[[noreturn]] void refuse_table(const std::string& where, const std::string& what,
                               const std::string& expected) {
  throw Error({.where = where, .what = what, .expected = expected});
}

int review_label(const std::string& label, const std::string& where) {
  for (size_t i = 0; i < 2; ++i) {
    const auto& names = kReviewLabelNames.at(i);
    if (std::ranges::find(names, label) != names.end()) return static_cast<int>(i);
  }
  refuse_table(where, "the label is " + in_quotes(label),
               "0, neg or negative; 1, pos or positive; files without labels are left out");
}

// Puts every second review into the test.
void draw_test(std::vector<Review>& reviews) {
  const Permutation order(reviews.size(), derive_key(0, RandomUse::kSplit));
  for (size_t i = 0; i < reviews.size(); ++i) reviews[order(i)].key.split = i % 2 == 1;
}

// Numbers from 0 in each split and label.
void number_reviews(std::vector<Review>& reviews) {
  std::array<std::array<int64_t, 2>, 2> counts{};
  for (Review& review : reviews) {
    ReviewKey& key = review.key;
    key.id = counts.at(static_cast<size_t>(key.split)).at(static_cast<size_t>(key.label))++;
  }
}

}  // namespace

Reviews open_review_tables(const std::vector<std::string>& sources, const std::string& scratch,
                           Progress& progress) {
  const OwnExamples read = read_with_python(sources, {.input = "text"}, scratch, progress);
  const OwnReading& reading = read.reading;
  if (reading.sequences != 1) {
    refuse_table(quoted_list(sources), "holds pairs of texts", "a text in each row");
  }
  std::vector<int> labels;
  for (size_t i = 0; i < reading.labels.size(); ++i) {
    labels.push_back(review_label(reading.labels[i], reading.first[i]));
  }
  std::vector<Review> found;
  bool drawn_split = true;
  read.frames.for_each([&](Frame& frame) {
    for (int64_t i = 0; i < frame.size(); ++i) {
      const FrameSplit split = frame.split(i);
      if (split == FrameSplit::kVal) {
        refuse_table(quoted_list(sources), "has a split for validation", "train and test alone");
      }
      drawn_split = drawn_split && split == FrameSplit::kNone;
      const std::span<const uint8_t> text = frame.text(0, i);
      if (text.size() > kMaxReviewBytes) {
        refuse_table(quoted_list(sources), "holds a text of over 1 MiB", "reviews");
      }
      Review& review = found.emplace_back();
      review.key = {.split = split == FrameSplit::kTest,
                    .label = labels.at(static_cast<size_t>(frame.label(i)))};
      review.text.assign(text.begin(), text.end());
    }
  });
  if (drawn_split) draw_test(found);
  number_reviews(found);
  Reviews reviews = reviews_in_memory(std::move(found));
  reviews.drawn_split = drawn_split;
  return reviews;
}

}  // namespace lra::tasks
