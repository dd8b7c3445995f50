#include "models/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lra::models {
namespace {

// sum over n and c of weight[c] * target[n][c] * -log softmax(scores[n])[c], divided by N.
double weighted_loss(const at::Tensor& scores_NC, const at::Tensor& labels_N,
                     const std::vector<double>& weights, double smoothing) {
  const auto scores = scores_NC.accessor<float, 2>();
  const auto labels = labels_N.accessor<int64_t, 1>();
  double sum = 0;
  for (int64_t n = 0; n < scores.size(0); ++n) {
    double total = 0;
    for (int64_t c = 0; c < scores.size(1); ++c) total += std::exp(double{scores[n][c]});
    for (int64_t c = 0; c < scores.size(1); ++c) {
      const double target =
          smoothing / static_cast<double>(scores.size(1)) + (labels[n] == c ? 1 - smoothing : 0);
      sum -= weights[static_cast<size_t>(c)] * target * (scores[n][c] - std::log(total));
    }
  }
  return sum / static_cast<double>(scores.size(0));
}

TEST(LossSettings, WeightTheClassesAndSmoothTheTarget) {
  const at::Tensor scores = at::sin(at::arange(12, at::kFloat)).reshape({4, 3});
  const at::Tensor labels = at::tensor({2, 0, 2, 1}, at::kLong);
  const std::vector<double> ones = {1, 1, 1}, weights = {0.5, 2, 1.25};
  const at::Tensor weights_C = at::tensor({0.5f, 2.0f, 1.25f});
  for (const double smoothing : {0.0, 0.1}) {
    const auto loss = [&](const at::Tensor& w) {
      return loss_with({.weights_C = w, .label_smoothing = smoothing}, scores, labels)
          .item<double>();
    };
    EXPECT_NEAR(loss({}), weighted_loss(scores, labels, ones, smoothing), 1e-6);
    EXPECT_NEAR(loss(weights_C), weighted_loss(scores, labels, weights, smoothing), 1e-6);
  }
  EXPECT_TRUE(
      at::equal(loss_with({}, scores, labels), loss_of(scores, labels, at::Reduction::Mean)))
      << "the same bits as without settings";
}

TEST(LossSettings, OfMicroBatchesAddUp) {
  const at::Tensor scores = at::sin(at::arange(12, at::kFloat)).reshape({4, 3});
  const at::Tensor labels = at::tensor({2, 0, 2, 1}, at::kLong);
  const LossSettings settings{.weights_C = at::tensor({3.0f, 1.0f, 0.1f}), .label_smoothing = 0.2};
  const auto part = [&](int64_t begin, int64_t end) {
    return loss_with(settings, scores.slice(0, begin, end), labels.slice(0, begin, end))
               .item<double>() *
           static_cast<double>(end - begin);
  };
  EXPECT_NEAR(part(0, 1) + part(1, 4), part(0, 4), 1e-6);
}

}  // namespace
}  // namespace lra::models
