// Blocked attention as in a textbook: one query at a time, all its scores in one row.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/visibility.h"

namespace lra::kernels::ref {
namespace {

struct Query {
  int64_t batch, head, index;
  PlaneRuns runs = {};

  int64_t row() const { return runs.row(index); }  // of the tensors
};

Query query_of(const AttentionProblem& problem, int64_t plane, int64_t index) {
  Query query{plane / problem.shape.heads, plane % problem.shape.heads, index};
  if (problem.visible.runs != nullptr) query.runs = problem.visible.runs->plane(plane);
  return query;
}

template <typename T>
Wide<T> dot(const T* a, const T* b, int64_t count) {
  Wide<T> sum = 0;
  for (int64_t e = 0; e < count; ++e) sum += Wide<T>{a[e]} * Wide<T>{b[e]};
  return sum;
}

template <typename T>
void add_scaled(Wide<T> factor, const T* x, Wide<T>* y, int64_t count) {
  for (int64_t e = 0; e < count; ++e) y[e] += factor * Wide<T>{x[e]};
}

// Memory of one (batch, head) pair, reused for each of its queries.
template <typename T>
struct Scratch {
  std::vector<KeyRange> ranges;
  std::vector<int64_t> keys;            // visible to the query at hand
  std::vector<Wide<T>> weights;         // of those keys
  std::vector<Wide<T>> row;             // of the query: its output or its gradient
  std::vector<Wide<T>> grad_k, grad_v;  // [S, E], [S, value_dim]
};

template <typename T>
void find_visible_keys(const AttentionProblem& problem, const Query& query, Scratch<T>& scratch) {
  scratch.keys.clear();
  if (query.runs.order != nullptr) {
    for (int64_t j = query.runs.begin()[query.index]; j < query.runs.end()[query.index]; ++j) {
      if (query.runs.sees(query.index, j)) scratch.keys.push_back(j);
    }
    return;
  }
  const AttentionVisibility& visible = problem.visible;
  const AttentionShape& shape = problem.shape;
  if (visible.query_mask && !visible.query_mask[query.batch * shape.query_length + query.index]) {
    return;
  }
  visible_key_ranges(problem, query.batch * shape.heads + query.head,
                     {query.index, query.index + 1}, scratch.ranges);
  for (const KeyRange& range : scratch.ranges) {
    for (int64_t j = range.begin; j < range.end; ++j) {
      if (visible.key_mask && !visible.key_mask[query.batch * shape.key_length + j]) continue;
      scratch.keys.push_back(j);
    }
  }
}

// Factor that dropout applies to the weight of (query, key): 0 or 1 / (1 - rate).
template <typename T>
T dropout_factor(const AttentionProblem& problem, const Query& query, int64_t key) {
  const uint32_t threshold = dropout_threshold(problem.dropout_rate);
  if (threshold == 0) return 1;
  const auto plane = static_cast<uint32_t>(query.batch * problem.shape.heads + query.head);
  const uint32_t value = dropout_value(
      problem.dropout_key, plane, static_cast<uint32_t>(query.index), static_cast<uint32_t>(key));
  return value < threshold ? T{0} : static_cast<T>(dropout_scale(problem.dropout_rate));
}

// Fills scratch.weights with the scores of the visible keys, divided by |scale|. Args: forward or
// backward.
template <typename T, typename Args>
void compute_scores(const AttentionProblem& problem, const Args& args, const Query& query,
                    Scratch<T>& scratch) {
  const T* q_row = args.q.row(query.batch, query.head, query.row());
  scratch.weights.clear();
  for (const int64_t j : scratch.keys) {
    const T* k_row = args.k.row(query.batch, query.head, query.runs.row(j));
    Wide<T> score = dot(q_row, k_row, problem.shape.head_dim);
    if (problem.scale < 0) score = -score;
    if (args.bias.data != nullptr) {
      score += args.bias.row(query.head, query.index)[j] / static_cast<Wide<T>>(problem.scale);
    }
    scratch.weights.push_back(score);
  }
}

// sqrt(2 pi) (score - sqrt(1/2)): the weight of the Laplace function is 0.5 (1 + erf) of it.
template <typename W>
W laplace_argument(const AttentionProblem& problem, W score) {
  return (score * static_cast<W>(problem.scale) - std::sqrt(W{0.5})) *
         std::sqrt(2 * std::numbers::pi_v<W>);
}

template <typename T>
void forward_query(const AttentionProblem& problem, const AttentionForward<T>& args,
                   const Query& query, Scratch<T>& scratch) {
  using W = Wide<T>;
  const AttentionShape& shape = problem.shape;
  const int64_t row = (query.batch * shape.heads + query.head) * shape.query_length + query.row();
  W& largest = args.softmax.largest[row];
  W& sum = args.softmax.sum[row];
  scratch.row.assign(static_cast<size_t>(shape.width_of_values()), W{0});
  largest = -std::numeric_limits<W>::infinity();
  sum = 0;
  find_visible_keys(problem, query, scratch);
  if (!scratch.keys.empty()) {
    compute_scores(problem, args, query, scratch);
    if (problem.weights == AttentionWeights::kLaplace) {
      for (W& weight : scratch.weights) {
        weight = std::erfc(-laplace_argument(problem, weight)) / 2;
      }
      largest = 0;
      sum = 1;
    } else {
      largest = *std::max_element(scratch.weights.begin(), scratch.weights.end());
      const W scale = static_cast<W>(std::abs(problem.scale));
      for (W& weight : scratch.weights) sum += weight = std::exp((weight - largest) * scale);
    }
    for (size_t n = 0; n < scratch.keys.size(); ++n) {
      const int64_t j = scratch.keys[n];
      const W weight = scratch.weights[n] / sum * dropout_factor<W>(problem, query, j);
      add_scaled(weight, args.v.row(query.batch, query.head, query.runs.row(j)), scratch.row.data(),
                 shape.width_of_values());
    }
  }
  std::copy(scratch.row.begin(), scratch.row.end(),
            args.out.row(query.batch, query.head, query.row()));
}

template <typename T>
void backward_query(const AttentionProblem& problem, const AttentionBackward<T>& args,
                    const Query& query, Scratch<T>& scratch) {
  using W = Wide<T>;
  const AttentionShape& shape = problem.shape;
  const int64_t b = query.batch, h = query.head, i = query.row();
  const int64_t dim = shape.head_dim, width = shape.width_of_values();
  find_visible_keys(problem, query, scratch);
  if (scratch.keys.empty()) return;
  compute_scores(problem, args, query, scratch);
  const int64_t row = (b * shape.heads + h) * shape.query_length + i;
  const W largest = args.softmax.largest[row], sum = args.softmax.sum[row];
  const T* grad_out = args.grad_out.row(b, h, i);
  // d logsumexp / d score = weight, so its gradient enters where the mean of the row does.
  W mean = dot(grad_out, args.out.row(b, h, i), width);
  if (args.grad_logsumexp != nullptr) mean -= args.grad_logsumexp[row];
  for (size_t n = 0; n < scratch.keys.size(); ++n) {
    const int64_t j = query.runs.row(scratch.keys[n]);
    const W factor = dropout_factor<W>(problem, query, scratch.keys[n]);
    const W grad_weight = factor * dot(grad_out, args.v.row(b, h, j), width);
    W weight, slope;
    if (problem.weights == AttentionWeights::kLaplace) {
      const W u = laplace_argument(problem, scratch.weights[n]);
      weight = std::erfc(-u) / 2;
      slope = std::numbers::sqrt2_v<W> * std::exp(-u * u) * grad_weight;
    } else {
      weight =
          std::exp((scratch.weights[n] - largest) * static_cast<W>(std::abs(problem.scale))) / sum;
      slope = weight * (grad_weight - mean);
    }
    add_scaled(weight * factor, grad_out, scratch.grad_v.data() + j * width, width);
    if (args.grad_bias.data != nullptr) args.grad_bias.row(h, i)[j] += slope;
    const W grad_score = static_cast<W>(problem.scale) * slope;
    add_scaled(grad_score, args.k.row(b, h, j), scratch.row.data(), dim);
    add_scaled(grad_score, args.q.row(b, h, i), scratch.grad_k.data() + j * dim, dim);
  }
}

template <typename T>
void backward_plane(const AttentionProblem& problem, const AttentionBackward<T>& args,
                    int64_t plane) {
  const AttentionShape& shape = problem.shape;
  const int64_t b = plane / shape.heads, h = plane % shape.heads, dim = shape.head_dim;
  const int64_t width = shape.width_of_values();
  Scratch<T> scratch;
  scratch.grad_k.assign(static_cast<size_t>(shape.key_length * dim), Wide<T>{0});
  scratch.grad_v.assign(static_cast<size_t>(shape.key_length * width), Wide<T>{0});
  for (int64_t i = 0; i < shape.query_length; ++i) {
    const Query query = query_of(problem, plane, i);
    scratch.row.assign(static_cast<size_t>(dim), Wide<T>{0});
    backward_query(problem, args, query, scratch);
    std::copy(scratch.row.begin(), scratch.row.end(), args.grad_q.row(b, h, query.row()));
  }
  for (int64_t j = 0; j < shape.key_length; ++j) {
    std::copy_n(scratch.grad_k.begin() + j * dim, dim, args.grad_k.row(b, h, j));
    std::copy_n(scratch.grad_v.begin() + j * width, width, args.grad_v.row(b, h, j));
  }
}

}  // namespace

template <typename T>
void attention_forward(const AttentionProblem& problem, const AttentionForward<T>& args) {
  check_attention_problem(problem);
  const AttentionShape& shape = problem.shape;
  parallel_for_each(shape.batch * shape.heads, [&](int64_t plane) {
    Scratch<T> scratch;
    for (int64_t i = 0; i < shape.query_length; ++i) {
      forward_query(problem, args, query_of(problem, plane, i), scratch);
    }
  });
}

template <typename T>
void attention_backward(const AttentionProblem& problem, const AttentionBackward<T>& args) {
  check_attention_problem(problem);
  const AttentionShape& shape = problem.shape;
  if (args.grad_bias.data == nullptr) {
    parallel_for_each(shape.batch * shape.heads,
                      [&](int64_t plane) { backward_plane(problem, args, plane); });
    return;
  }
  // Planes of one head add to one table, or to one row of distances.
  parallel_for_each(shape.heads, [&](int64_t head) {
    for (int64_t i = 0; i < shape.query_length; ++i) {
      std::fill_n(args.grad_bias.row(head, i), shape.key_length, Wide<T>{0});
    }
    for (int64_t b = 0; b < shape.batch; ++b) {
      backward_plane(problem, args, b * shape.heads + head);
    }
  });
}

template void attention_forward<float>(const AttentionProblem&, const AttentionForward<float>&);
template void attention_forward<Bf16>(const AttentionProblem&, const AttentionForward<Bf16>&);
template void attention_forward<double>(const AttentionProblem&, const AttentionForward<double>&);
template void attention_backward<float>(const AttentionProblem&, const AttentionBackward<float>&);
template void attention_backward<Bf16>(const AttentionProblem&, const AttentionBackward<Bf16>&);
template void attention_backward<double>(const AttentionProblem&, const AttentionBackward<double>&);

}  // namespace lra::kernels::ref
