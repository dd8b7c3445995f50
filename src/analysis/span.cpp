#include "analysis/span.h"

#include <algorithm>
#include <cmath>

#include "analysis/examples.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/stop_flag.h"
#include "data/contact_sheet.h"

namespace lra::analysis {
namespace {

// A query whose total weight on counted tokens is at most this attends to CLS only.
constexpr double kNothing = 1e-6;

std::vector<double> pixel_distances(int64_t side) {
  std::vector<double> table;
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) table.push_back(std::hypot(y, x));
  }
  return table;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(std::max<size_t>(1, values.size()));
}

// n - 1; 0 for one value.
double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(2, values.size()) - 1));
}

}  // namespace

double uniform_span(int64_t length) {
  const auto n = static_cast<double>(length);
  return length == 0 ? 0 : (n * n - 1) / (3 * n);
}

double uniform_pixel_span(int64_t side) {
  if (side == 0) return 0;
  // Rows d apart occur 2 (side - d) times, d = 0 only side times.
  const auto pairs = [side](int64_t d) {
    return static_cast<double>((side - d) * (d > 0 ? 2 : 1));
  };
  double sum = 0;
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) sum += pairs(y) * pairs(x) * std::hypot(y, x);
  }
  return sum / std::pow(static_cast<double>(side), 4);
}

SpanSums::SpanSums(const AttentionWeights& attention, int64_t side)
    : attention_(attention), side_(side), pixel_distances_(pixel_distances(side)) {
  const auto modules = static_cast<size_t>(attention.num_layers() * attention.num_heads());
  for (auto& sums : head_sums_) sums.assign(modules, 0.0);
}

// Adds the weights of keys first_key, ... in the row of `query`; places count CLS.
void SpanSums::add_keys(std::span<const float> weights, int64_t query, int64_t first_key,
                        QuerySums& sums) const {
  const int64_t cls = attention_.has_cls() ? 1 : 0;
  if (first_key < cls) {
    sums.cls += weights[0];
    sums.cls_distance += weights[0] * static_cast<double>(query);
    weights = weights.subspan(1);
    ++first_key;
  }
  double mass = 0, distance = 0, pixels = 0;
  int64_t key = first_key;
  for (const double weight : weights) {
    mass += weight;
    distance += weight * static_cast<double>(std::abs(query - key++));
  }
  sums.tokens += mass;
  sums.tokens_distance += distance;
  if (side_ == 0 || query < cls) return;
  const int64_t row = (query - cls) / side_, column = (query - cls) % side_;
  // Counted on instead of divided: two divisions per weight would take most of the time.
  int64_t key_row = (first_key - cls) / side_, key_column = (first_key - cls) % side_;
  for (const double weight : weights) {
    const int64_t place = std::abs(row - key_row) * side_ + std::abs(column - key_column);
    pixels += weight * pixel_distances_[static_cast<size_t>(place)];
    if (++key_column < side_) continue;
    key_column = 0;
    ++key_row;
  }
  sums.pixel_distance += pixels;
}

std::vector<SpanSums::QuerySums> SpanSums::query_sums(int64_t layer,
                                                      const at::Tensor& x_1SD) const {
  const int64_t positions = x_1SD.size(1);
  std::vector<QuerySums> queries(static_cast<size_t>(attention_.num_heads() * positions));
  attention_.for_each_tile(layer, x_1SD, [&](const WeightTile& tile) {
    const int64_t rows = tile.weights_HQK.size(1), keys = tile.weights_HQK.size(2);
    const float* weights = tile.weights_HQK.const_data_ptr<float>();
    parallel_for_each(attention_.num_heads() * rows, [&](int64_t n) {
      const int64_t query = tile.first_query + n % rows;
      add_keys({weights + n * keys, static_cast<size_t>(keys)}, query, tile.first_key,
               queries[static_cast<size_t>(n / rows * positions + query)]);
    });
  });
  return queries;
}

SpanSums::Spans SpanSums::head_spans(std::span<const QuerySums> queries) {
  const size_t cls = attention_.has_cls() ? 1 : 0;
  Spans sums = {}, counts = {};
  const auto count = [&](Variant variant, double distance, double mass) {
    if (mass <= kNothing) return;
    sums[variant] += distance / mass;
    counts[variant] += 1;
  };
  for (size_t query = 0; query < queries.size(); ++query) {
    const QuerySums& q = queries[query];
    const double mass = q.tokens + q.cls;
    least_row_sum_ = std::min(least_row_sum_, mass);
    largest_row_sum_ = std::max(largest_row_sum_, mass);
    count(kWithCls, q.tokens_distance + q.cls_distance, mass);
    if (query < cls) continue;
    count(kTokens, q.tokens_distance, q.tokens);
    count(kPixels, q.pixel_distance, q.tokens);
  }
  for (size_t v = 0; v < kNumVariants; ++v) sums[v] /= std::max(1.0, counts[v]);
  return sums;
}

void SpanSums::add(const at::Tensor& tokens_1L) {
  const int64_t length = tokens_1L.size(1), heads = attention_.num_heads();
  const auto inputs = attention_.mixer_inputs(tokens_1L);
  Spans sums = {};
  for (int64_t layer = 0; layer < attention_.num_layers(); ++layer) {
    const at::Tensor& x_1SD = inputs[static_cast<size_t>(layer)];
    const std::vector<QuerySums> queries = query_sums(layer, x_1SD);
    const auto positions = static_cast<size_t>(x_1SD.size(1));
    for (int64_t head = 0; head < heads; ++head) {
      const Spans spans =
          head_spans(std::span(queries).subspan(static_cast<size_t>(head) * positions, positions));
      for (size_t v = 0; v < kNumVariants; ++v) {
        head_sums_[v][static_cast<size_t>(layer * heads + head)] += spans[v];
        sums[v] += spans[v];
      }
    }
  }
  for (size_t v = 0; v < kNumVariants; ++v) {
    means_[v].push_back(sums[v] / static_cast<double>(head_sums_[v].size()));
  }
  uniform_sums_[kTokens] += uniform_span(length);
  uniform_sums_[kWithCls] += uniform_span(inputs[0].size(1));
  uniform_sums_[kPixels] += uniform_pixel_span(side_);
  length_sum_ += static_cast<double>(length);
}

SpanFigures SpanSums::figures(Variant variant) const {
  const auto count = static_cast<double>(num_examples());
  SpanFigures f{.mean = mean_of(means_[variant]),
                .deviation = deviation_of(means_[variant]),
                .uniform = uniform_sums_[variant] / count,
                .layers = {},
                .heads = {}};
  const auto heads = static_cast<size_t>(attention_.num_heads());
  for (size_t layer = 0; layer < head_sums_[variant].size() / heads; ++layer) {
    std::vector<double> row;
    for (size_t h = 0; h < heads; ++h)
      row.push_back(head_sums_[variant][layer * heads + h] / count);
    f.layers.push_back(mean_of(row));
    f.heads.push_back(std::move(row));
  }
  return f;
}

SpanResult SpanSums::result() const {
  LRA_CHECK_GE(num_examples(), 1);
  SpanResult result{.tokens = figures(kTokens),
                    .with_cls = {},
                    .pixels = {},
                    .mean_length = length_sum_ / static_cast<double>(num_examples()),
                    .least_row_sum = least_row_sum_,
                    .largest_row_sum = largest_row_sum_};
  if (attention_.has_cls()) result.with_cls = figures(kWithCls);
  if (side_ > 0) result.pixels = figures(kPixels);
  return result;
}

std::optional<SpanResult> measure_span(const AttentionWeights& attention, const Split& split,
                                       const TaskShape& shape, const std::vector<int64_t>& examples,
                                       const std::function<void(int64_t)>& done) {
  SpanSums sums(attention, image_side(shape));
  for (const int64_t example : examples) {
    for (int64_t tower = 0; tower < shape.num_towers; ++tower) {
      if (stop_requested()) return {};
      const at::Tensor tokens_1L = sequence_tokens(split, example, tower, shape);
      if (tokens_1L.size(1) > 0) sums.add(tokens_1L);
    }
    done(1);
  }
  if (sums.num_examples() == 0) {
    throw Error({.where = "--split",
                 .what = "none of the examples has a token",
                 .advice = "see 'lra data check'"});
  }
  return sums.result();
}

}  // namespace lra::analysis
