// Blocked attention as in a textbook: one query at a time, all its scores in one row.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "base/rng.h"
#include "kernels/attention.h"
#include "kernels/visibility.h"

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
T dot(const T* a, const T* b, int64_t count) {
  T sum = 0;
  for (int64_t e = 0; e < count; ++e) sum += a[e] * b[e];
  return sum;
}

template <typename T>
void add_scaled(T factor, const T* x, T* y, int64_t count) {
  for (int64_t e = 0; e < count; ++e) y[e] += factor * x[e];
}

// Memory of one (batch, head) pair, reused for each of its queries.
template <typename T>
struct Scratch {
  std::vector<KeyRange> ranges;
  std::vector<int64_t> keys;  // visible to the query at hand
  std::vector<T> weights;     // of those keys
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

// What dropout multiplies the weight of (query, key) with: 0 or 1 / (1 - rate).
template <typename T>
T dropout_factor(const AttentionProblem& problem, const Query& query, int64_t key) {
  const uint32_t threshold = dropout_threshold(problem.dropout_rate);
  if (threshold == 0) return 1;
  const auto plane = static_cast<uint32_t>(query.batch * problem.shape.heads + query.head);
  const uint32_t value = dropout_value(
      problem.dropout_key, plane, static_cast<uint32_t>(query.index), static_cast<uint32_t>(key));
  return value < threshold ? T{0} : static_cast<T>(dropout_scale(problem.dropout_rate));
}

// Fills scratch.weights with the scores of the visible keys.
template <typename T>
void compute_scores(const AttentionProblem& problem, const HeadView<const T>& q,
                    const HeadView<const T>& k, const Query& query, Scratch<T>& scratch) {
  const T* q_row = q.row(query.batch, query.head, query.row());
  scratch.weights.clear();
  for (const int64_t j : scratch.keys) {
    const T* k_row = k.row(query.batch, query.head, query.runs.row(j));
    const T score = dot(q_row, k_row, problem.shape.head_dim);
    scratch.weights.push_back(static_cast<T>(problem.scale) * score);
  }
}

template <typename T>
void forward_query(const AttentionProblem& problem, const AttentionForward<T>& args,
                   const Query& query, Scratch<T>& scratch) {
  const AttentionShape& shape = problem.shape;
  T* out = args.out.row(query.batch, query.head, query.row());
  T& logsumexp =
      args.logsumexp[(query.batch * shape.heads + query.head) * shape.query_length + query.row()];
  std::fill(out, out + shape.head_dim, T{0});
  logsumexp = -std::numeric_limits<T>::infinity();
  find_visible_keys(problem, query, scratch);
  if (scratch.keys.empty()) return;
  compute_scores(problem, args.q, args.k, query, scratch);
  const T largest = *std::max_element(scratch.weights.begin(), scratch.weights.end());
  T sum = 0;
  for (T& weight : scratch.weights) sum += weight = std::exp(weight - largest);
  logsumexp = largest + std::log(sum);
  for (size_t n = 0; n < scratch.keys.size(); ++n) {
    const int64_t j = scratch.keys[n];
    const T weight = scratch.weights[n] / sum * dropout_factor<T>(problem, query, j);
    add_scaled(weight, args.v.row(query.batch, query.head, query.runs.row(j)), out, shape.head_dim);
  }
}

template <typename T>
void backward_query(const AttentionProblem& problem, const AttentionBackward<T>& args,
                    const Query& query, Scratch<T>& scratch) {
  const AttentionShape& shape = problem.shape;
  const int64_t b = query.batch, h = query.head, i = query.row();
  const int64_t dim = shape.head_dim;
  T* grad_q = args.grad_q.row(b, h, i);
  std::fill(grad_q, grad_q + dim, T{0});
  find_visible_keys(problem, query, scratch);
  if (scratch.keys.empty()) return;
  compute_scores(problem, args.q, args.k, query, scratch);
  const int64_t row = (b * shape.heads + h) * shape.query_length + i;
  const T logsumexp = args.logsumexp[row];
  const T* grad_out = args.grad_out.row(b, h, i);
  // d logsumexp / d score = weight, so its gradient enters where the mean of the row does.
  T mean = dot(grad_out, args.out.row(b, h, i), dim);
  if (args.grad_logsumexp != nullptr) mean -= args.grad_logsumexp[row];
  for (size_t n = 0; n < scratch.keys.size(); ++n) {
    const int64_t j = query.runs.row(scratch.keys[n]);
    const T weight = std::exp(scratch.weights[n] - logsumexp);
    const T factor = dropout_factor<T>(problem, query, scratch.keys[n]);
    add_scaled(weight * factor, grad_out, args.grad_v.row(b, h, j), dim);
    const T grad_weight = factor * dot(grad_out, args.v.row(b, h, j), dim);
    const T grad_score = static_cast<T>(problem.scale) * weight * (grad_weight - mean);
    add_scaled(grad_score, args.k.row(b, h, j), grad_q, dim);
    add_scaled(grad_score, args.q.row(b, h, i), args.grad_k.row(b, h, j), dim);
  }
}

template <typename T>
void zero_rows(const AttentionProblem& problem, const HeadView<T>& view, int64_t batch,
               int64_t head) {
  for (int64_t j = 0; j < problem.shape.key_length; ++j) {
    T* row = view.row(batch, head, j);
    std::fill(row, row + problem.shape.head_dim, T{0});
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
  parallel_for_each(shape.batch * shape.heads, [&](int64_t plane) {
    Scratch<T> scratch;
    const int64_t batch = plane / shape.heads, head = plane % shape.heads;
    zero_rows(problem, args.grad_k, batch, head);
    zero_rows(problem, args.grad_v, batch, head);
    for (int64_t i = 0; i < shape.query_length; ++i) {
      backward_query(problem, args, query_of(problem, plane, i), scratch);
    }
  });
}

template void attention_forward<float>(const AttentionProblem&, const AttentionForward<float>&);
template void attention_forward<double>(const AttentionProblem&, const AttentionForward<double>&);
template void attention_backward<float>(const AttentionProblem&, const AttentionBackward<float>&);
template void attention_backward<double>(const AttentionProblem&, const AttentionBackward<double>&);

}  // namespace lra::kernels::ref
