#include "tasks/text/review_tables.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/permutation.h"
#include "base/quoted.h"
#include "base/rng.h"
#include "data/text_lines.h"
#include "io/progress.h"
#include "tasks/own/tables.h"
#include "tasks/text/review_archive.h"

namespace lra::tasks {
namespace {

constexpr std::array<std::array<std::string_view, 3>, 2> kReviewLabelNames = {
    {{"0", "neg", "negative"}, {"1", "pos", "positive"}}};

int review_label(const std::string& label, const std::string& where) {
  for (size_t i = 0; i < 2; ++i) {
    const auto& names = kReviewLabelNames.at(i);
    if (std::ranges::find(names, label) != names.end()) return static_cast<int>(i);
  }
  refuse_data(where, "the label is " + in_quotes(label), "0, neg or negative; 1, pos or positive",
              "leave out files of reviews without a label");
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
  std::ranges::stable_sort(reviews, {}, &Review::key);
}

}  // namespace

ReviewTables open_review_tables(const std::vector<std::string>& sources, Progress& progress) {
  auto found = std::make_shared<std::vector<Review>>();
  ReviewTables tables;
  bool has_splits = false;
  Schema schema({});
  for (const std::string& source : sources) {
    const std::string of_file = sources.size() > 1 ? split_of_file(source) : "";
    read_table(source, schema, [&](const std::string& where, OwnExample&& example) {
      const std::string split =
          example.split.empty() ? of_file : split_of_name(std::move(example.split));
      if (split == "val" || (split.empty() && (sources.size() > 1 || has_splits))) {
        refuse_data(where, "is not a split of the task", "train or test",
                    "in a column split, or in the file names");
      }
      has_splits = has_splits || !split.empty();
      if (example.sequences.size() != 1 || example.sequences[0].channels != 0) {
        refuse_data(where, "is not a review", "a text");
      }
      Review& review = found->emplace_back();
      review.key = {.split = split == "test", .label = review_label(example.label, where)};
      review.text = document_text(example.sequences[0].text, where);
      if (review.text.size() > kMaxReviewBytes) {
        refuse_data(where, "has over 1 MiB", "the text of a review");
      }
      progress.update();
    });
  }
  schema.refuse_unread_splits();
  tables.drawn_split = !has_splits;
  if (tables.drawn_split) draw_test(*found);
  number_reviews(*found);
  for (const Review& review : *found) {
    tables.reviews.keys.push_back(review.key);
    tables.reviews.num_bytes += review.text.size();
  }
  tables.reviews.read = [found](size_t i, const ReviewKey&) { return (*found)[i].text; };
  return tables;
}

}  // namespace lra::tasks
