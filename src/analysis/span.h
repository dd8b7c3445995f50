// Required attention span (Tay et al. 2021, section 2.3 and figure 2): the mean distance between a
// query and the tokens that it attends to, weighted by the attention weights.
//
// span = mean over examples, layers, heads and queries i of sum_j A_ij |i - j| / sum_j A_ij. CLS is
// left out, as query and as key, and the weights that are left are divided by their sum; a query
// that attends only to CLS is left out as well. `with_cls` counts CLS as the token before the
// first. An example in which no query sees a token has span 0. Padding does not exist here: an
// example is read alone, at its own length. On images `pixels` is the same mean of the Euclidean
// distance on the grid of pixels.
//
// Equal weights give (L^2 - 1) / (3 L) for an example of L tokens, which is reported next to each
// span.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/attention_weights.h"
#include "base/task_shape.h"
#include "data/dataset.h"
#include "records/analysis_record.h"

namespace lra::analysis {

// Mean distance of two places drawn from 0 .. length - 1: (L^2 - 1) / (3 L); 0 for length 0.
double uniform_span(int64_t length);
// The same on a square grid of side^2 pixels, Euclidean.
double uniform_pixel_span(int64_t side);

// Sums of one model's spans over examples.
class SpanSums {
 public:
  // side: of images, else 0.
  SpanSums(const AttentionWeights& attention, int64_t side);
  // Adds one example, L >= 1. Throws lra::Error for invalid weights.
  void add(const at::Tensor& tokens_1L);
  int64_t num_examples() const { return static_cast<int64_t>(means_[0].size()); }
  // Needs at least one example.
  SpanResult result() const;

 private:
  enum Variant { kTokens, kWithCls, kPixels, kNumVariants };
  using Spans = std::array<double, kNumVariants>;
  // Sums over the weights of one query.
  struct QuerySums {
    double tokens = 0, tokens_distance = 0, cls = 0, cls_distance = 0, pixel_distance = 0;
  };

  void add_keys(std::span<const float> weights, int64_t query, int64_t first_key,
                QuerySums& sums) const;
  std::vector<QuerySums> query_sums(int64_t layer, const at::Tensor& x_1SD) const;  // [H * S]
  Spans head_spans(std::span<const QuerySums> queries);
  SpanFigures figures(Variant variant) const;

  const AttentionWeights& attention_;
  const int64_t side_;
  const std::vector<double> pixel_distances_;                // [rows apart][columns apart]
  std::array<std::vector<double>, kNumVariants> head_sums_;  // [layer * H + head], over examples
  std::array<std::vector<double>, kNumVariants> means_;      // of each example
  Spans uniform_sums_ = {};
  double length_sum_ = 0;
  double least_row_sum_ = INFINITY, largest_row_sum_ = 0;
};

// Sequences of the chosen examples (both documents of a pair), one at a time; empty ones are
// skipped. Calls `done` after every example. Nothing when a stop was requested.
std::optional<SpanResult> measure_span(const AttentionWeights& attention, const Split& split,
                                       const TaskShape& shape, const std::vector<int64_t>& examples,
                                       const std::function<void(int64_t)>& done);

}  // namespace lra::analysis
