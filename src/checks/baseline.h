// Trivial classifiers that a model has to beat. Accuracies are 0 if the test is empty.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "data/dataset.h"

namespace lra::checks {

struct Baseline {
  std::string name;     // "majority"
  double accuracy = 0;  // on the test split, 0..1
};

// Share of the test examples that have the label predict(example), which several threads call.
double share_right(const Split& test, const std::function<int32_t(int64_t example)>& predict);

// Examples of each label; labels above are not counted.
std::vector<int64_t> label_counts(const Split& split, int64_t num_classes);
// The smallest one of a tie.
int32_t most_frequent_label(const Split& train, int64_t num_classes);

// The most frequent label of train.
Baseline majority_baseline(const Split& train, const Split& test, int64_t num_classes);

// The threshold on the sum of the stored bytes that is best on `train`, for two classes: how bright
// an image is.
Baseline brightness_baseline(const Split& train, const Split& test);

// Logistic regression for two classes on log(1 + count) of each of the 256 stored bytes within the
// first `length` of each document of an example (`num_towers` of them), standardised on train, with
// a small L2 penalty. The result does not depend on the number of threads.
Baseline byte_unigram_baseline(const Split& train, const Split& test, int64_t length,
                               int64_t num_towers = 1);

// The best single token: predicts the label that is most frequent on train for the token at one
// place, the place that is best on train. The places of each tower are all
// positions if every example has the same number of tokens (images), else the first and the last
// 64. It finds a label that was written into a corner of the picture, or behind the text. Reads at
// most 10,000 examples of train, fewer long ones. Wider tokens, and each channel of values, are
// told apart by up to 256 ranges of equal share.
Baseline place_baseline(const Split& train, const Split& test, int64_t num_classes,
                        int64_t num_towers = 1);
// The same for the first token alone, of all examples of train.
Baseline first_token_baseline(const std::string& name, const Split& train, const Split& test,
                              int64_t num_classes);

// The features of examples. `read` adds those of one to zeros; it is called from several threads.
struct Features {
  int64_t size = 0;
  std::function<void(const Split&, int64_t example, std::span<float>)> read;
  bool are_scaled = false;  // to deviation 1 on train; those that never vary are left out
};

// The nearest of the means that the classes have on `train`, by Euclidean distance.
Baseline nearest_mean_baseline(const Split& train, const Split& test, int64_t num_classes,
                               const Features& features);

}  // namespace lra::checks
