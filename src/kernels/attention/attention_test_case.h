// Attention problems for tests: random tensors in either layout, masks, and a naive dense oracle
// that holds whole score rows and shares no code with the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/attention/attention.h"

namespace lra::kernels {

enum class Layout { kBHLE, kBLHE };
enum class BlockListsFor { kAll, kEachHead, kEachPlane };

// Settings that a test varies; everything else of an AttentionCase follows from them.
struct CaseSettings {
  AttentionShape shape;
  Layout layout = Layout::kBLHE;
  int64_t left = -1, right = -1;
  bool key_mask = false;    // ragged lengths with holes; the last of several batch elements empty
  bool query_mask = false;  // likewise
  int64_t query_block = 0, key_block = 0;  // 0: no block lists
  BlockListsFor block_lists_for = BlockListsFor::kAll;
  double dropout_rate = 0;
  bool grad_logsumexp = false;
  bool bias = false, relative = false;  // the bias: one for each distance
  bool laplace = false;
  int64_t rounds = 0;  // of sorted runs; the last of them is what the problem sees
  int64_t buckets = 0, chunk = 0;
  bool causal = false;
  bool bf16_values = false;  // inputs that bfloat16 holds exactly

  std::string describe() const {
    const auto text = [](auto x) { return std::to_string(x) + " "; };
    return "B " + text(shape.batch) + "H " + text(shape.heads) + "L " + text(shape.query_length) +
           "S " + text(shape.key_length) + "E " + text(shape.head_dim) + "layout " +
           text(static_cast<int>(layout)) + "window " + text(left) + text(right) + "masks " +
           text(key_mask) + text(query_mask) + "blocks " + text(query_block) + text(key_block) +
           text(static_cast<int>(block_lists_for)) + "dropout " + text(dropout_rate) +
           "grad_logsumexp " + text(grad_logsumexp) + "bias " + text(bias) + text(relative) +
           "value_dim " + text(shape.value_dim) + "laplace " + text(laplace) + "rounds " +
           text(rounds) + text(buckets) + text(chunk) + text(causal);
  }
};

// Inputs, outputs and gradients of one problem.
template <typename T>
struct AttentionCase {
  CaseSettings settings;
  AttentionShape shape;
  std::vector<uint8_t> key_mask, query_mask;
  std::vector<int64_t> offsets;
  std::vector<int32_t> key_blocks;
  BlockLists blocks;
  SortedRuns runs;
  std::vector<std::vector<int32_t>> rounds;
  std::vector<int64_t> ranks;  // [planes, L] in the last round
  std::vector<T> q, k, v, grad_out, out, grad_q, grad_k, grad_v;
  std::vector<Wide<T>> grad_logsumexp, largest, sum, bias, grad_bias;  // bias: rows padded by 3

  explicit AttentionCase(const CaseSettings& s, uint64_t seed = 1) : settings(s), shape(s.shape) {
    RandomStream random(seed);
    const int64_t queries = shape.batch * shape.heads * shape.query_length;
    const int64_t keys = shape.batch * shape.heads * shape.key_length;
    const int64_t width = shape.width_of_values();
    fill(q, queries * shape.head_dim, random);
    fill(grad_out, queries * width, random);
    fill(k, keys * shape.head_dim, random);
    fill(v, keys * width, random);
    if (settings.grad_logsumexp) fill(grad_logsumexp, queries, random);
    // Outputs start as NaN: an element that a kernel does not write fails every comparison.
    const T nan = std::numeric_limits<Wide<T>>::quiet_NaN();
    out.assign(queries * width, nan);
    grad_q.assign(queries * shape.head_dim, nan);
    grad_k.assign(keys * shape.head_dim, nan);
    grad_v.assign(keys * width, nan);
    for (auto* x : {&largest, &sum}) x->assign(queries, nan);
    if (settings.relative) {
      fill(bias, shape.heads * distances(), random);
      grad_bias.assign(bias.size(), nan);
    } else if (settings.bias) {
      fill(bias, shape.heads * shape.query_length * bias_row(), random);
      for (size_t n = 0; n < bias.size(); ++n) {
        const bool is_padding = static_cast<int64_t>(n) % bias_row() >= shape.key_length;
        grad_bias.push_back(is_padding ? Wide<T>{0} : Wide<T>{nan});
      }
    }
    if (settings.key_mask) make_mask(key_mask, shape.key_length, random);
    if (settings.query_mask) make_mask(query_mask, shape.query_length, random);
    if (settings.query_block > 0) make_blocks(random);
    if (settings.rounds > 0) make_rounds(random);
  }

  // Refers to the members above.
  AttentionProblem problem() {
    AttentionProblem p;
    p.shape = shape;
    p.scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
    p.visible.left = settings.left;
    p.visible.right = settings.right;
    p.visible.key_mask = settings.key_mask ? key_mask.data() : nullptr;
    p.visible.query_mask = settings.query_mask ? query_mask.data() : nullptr;
    blocks.offsets = offsets.data();
    blocks.key_blocks = key_blocks.data();
    p.visible.blocks = settings.query_block > 0 ? &blocks : nullptr;
    if (settings.rounds > 0) {
      runs = {rounds.back().data(), shape.query_length, settings.rounds - 1};
      p.visible.runs = &runs;
    }
    p.dropout_rate = settings.dropout_rate;
    if (settings.laplace) p.weights = AttentionWeights::kLaplace;
    p.dropout_key = 0x123456789ABCDEF0;
    return p;
  }

  HeadView<T> view(std::vector<T>& data, int64_t length) const {
    const int64_t dim = static_cast<int64_t>(data.size()) / (shape.batch * shape.heads * length);
    if (settings.layout == Layout::kBHLE) {
      return {data.data(), shape.heads * length * dim, length * dim, dim};
    }
    return {data.data(), shape.heads * length * dim, dim, shape.heads * dim};
  }
  HeadView<T> of_queries(std::vector<T>& data) const { return view(data, shape.query_length); }
  HeadView<T> of_keys(std::vector<T>& data) const { return view(data, shape.key_length); }

  int64_t distances() const { return shape.query_length + shape.key_length - 1; }
  int64_t bias_row() const { return shape.key_length + 3; }
  template <typename U, typename V>
  ScoreBias<U> bias_view(std::vector<V>& data) const {
    if (!settings.bias) return {};
    if (settings.relative) return {data.data() + shape.query_length - 1, distances(), -1};
    return {data.data(), shape.query_length * bias_row(), bias_row()};
  }

  SoftmaxRows<Wide<T>> softmax() { return {largest.data(), sum.data()}; }
  std::vector<double> logsumexp() const {
    std::vector<double> all;
    for (size_t n = 0; n < sum.size(); ++n) {
      const double scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
      all.push_back(scale * double{largest[n]} + std::log(double{sum[n]}));
    }
    return all;
  }
  AttentionForward<T> forward_args() {
    return {constant(of_queries(q)),
            constant(of_keys(k)),
            constant(of_keys(v)),
            of_queries(out),
            softmax(),
            bias_view<const Wide<T>>(bias)};
  }
  AttentionBackward<T> backward_args() {
    return {constant(of_queries(q)),
            constant(of_keys(k)),
            constant(of_keys(v)),
            constant(of_queries(out)),
            constant(of_queries(grad_out)),
            {largest.data(), sum.data()},
            of_queries(grad_q),
            of_keys(grad_k),
            of_keys(grad_v),
            settings.grad_logsumexp ? grad_logsumexp.data() : nullptr,
            bias_view<const Wide<T>>(bias),
            bias_view<Wide<T>>(grad_bias)};
  }

  bool is_visible(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (settings.left >= 0 && j < i - settings.left) return false;
    if (settings.right >= 0 && j > i + settings.right) return false;
    if (settings.key_mask && !key_mask[b * shape.key_length + j]) return false;
    if (settings.query_mask && !query_mask[b * shape.query_length + i]) return false;
    if (settings.rounds > 0) {
      const int64_t plane = b * shape.heads + h;
      return runs.plane(plane).sees(rank_of(plane, i), rank_of(plane, j));
    }
    if (settings.query_block == 0) return true;
    const int64_t query_blocks = (shape.query_length - 1) / settings.query_block + 1;
    const int64_t list = settings.block_lists_for == BlockListsFor::kAll ? 0
                         : settings.block_lists_for == BlockListsFor::kEachHead
                             ? h
                             : b * shape.heads + h;
    const int64_t row = list * query_blocks + i / settings.query_block;
    const auto first = key_blocks.begin() + offsets[row],
               last = key_blocks.begin() + offsets[row + 1];
    return std::find(first, last, j / settings.key_block) != last;
  }

  // Position of a row in the order that the rules and dropout refer to.
  int64_t rank_of(int64_t plane, int64_t row) const {
    if (settings.rounds == 0) return row;
    return ranks[plane * shape.query_length + row];
  }

 private:
  static HeadView<const T> constant(const HeadView<T>& x) {
    return {x.data, x.batch_stride, x.head_stride, x.row_stride};
  }

  // Values that float holds exactly, so that both precisions see the same problem.
  template <typename U>
  void fill(std::vector<U>& x, int64_t count, RandomStream& random) const {
    x.resize(count);
    for (U& value : x) {
      const auto drawn = static_cast<float>(random.normal());
      value = settings.bf16_values ? float{Bf16(drawn)} : drawn;
    }
  }

  void make_mask(std::vector<uint8_t>& mask, int64_t length, RandomStream& random) const {
    for (int64_t b = 0; b < shape.batch; ++b) {
      const bool empty = shape.batch > 1 && b == shape.batch - 1;
      const int64_t valid = empty ? 0 : length - random.below(static_cast<uint32_t>(length));
      for (int64_t i = 0; i < length; ++i) mask.push_back(i < valid && random.below(8) != 0);
    }
  }

  // Random buckets, an eighth of the rows padding.
  void make_rounds(RandomStream& random) {
    const int64_t planes = shape.batch * shape.heads;
    std::vector<int32_t> buckets(settings.rounds * planes * shape.query_length);
    for (int32_t& bucket : buckets) {
      bucket = static_cast<int32_t>(random.below(8) == 0 ? settings.buckets
                                                         : random.below(settings.buckets));
    }
    std::vector<int32_t*> pointers;
    for (int64_t r = 0; r < settings.rounds; ++r) {
      rounds.emplace_back(planes * (3 + 3 * r) * shape.query_length, -1);
      pointers.push_back(rounds.back().data());
    }
    make_sorted_runs(buckets.data(), planes, shape.query_length, settings.buckets,
                     {settings.chunk, settings.causal, true}, settings.rounds, pointers.data());
    ranks.resize(planes * shape.query_length);
    const SortedRuns last{rounds.back().data(), shape.query_length, settings.rounds - 1};
    for (int64_t n = 0; n < planes * shape.query_length; ++n) {
      const int64_t plane = n / shape.query_length, rank = n % shape.query_length;
      ranks[plane * shape.query_length + last.plane(plane).order[rank]] = rank;
    }
  }

  // About half of the blocks, in descending order; now and then a query block without any.
  void make_blocks(RandomStream& random) {
    blocks.query_block = settings.query_block;
    blocks.key_block = settings.key_block;
    if (settings.block_lists_for != BlockListsFor::kAll) blocks.lists = shape.heads;
    if (settings.block_lists_for == BlockListsFor::kEachPlane) blocks.lists *= shape.batch;
    const int64_t rows = blocks.lists * ((shape.query_length - 1) / settings.query_block + 1);
    offsets.assign(1, 0);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t block = (shape.key_length - 1) / settings.key_block; block >= 0; --block) {
        if (random.below(2) == 0) key_blocks.push_back(static_cast<int32_t>(block));
      }
      offsets.push_back(static_cast<int64_t>(key_blocks.size()));
    }
  }
};

// Fills out, sum (relative to a largest score of 0) and the gradients of a case by the formulas,
// one query after another.
inline void run_dense_oracle(AttentionCase<double>& c) {
  const AttentionProblem problem = c.problem();
  const auto [B, H, L, S, E, value_dim] = c.shape;
  const int64_t width = c.shape.width_of_values();
  const auto q = c.of_queries(c.q), grad_out = c.of_queries(c.grad_out), out = c.of_queries(c.out),
             grad_q = c.of_queries(c.grad_q);
  const auto k = c.of_keys(c.k), v = c.of_keys(c.v), grad_k = c.of_keys(c.grad_k),
             grad_v = c.of_keys(c.grad_v);
  for (auto* x : {&c.out, &c.grad_q, &c.grad_k, &c.grad_v}) std::fill(x->begin(), x->end(), 0.0);
  const ScoreBias<double> grad_bias = c.bias_view<double>(c.grad_bias);
  for (int64_t row = 0; c.settings.bias && row < H * L; ++row) {
    std::fill_n(grad_bias.row(row / L, row % L), S, 0.0);
  }
  for (int64_t row = 0; row < B * H * L; ++row) {
    const int64_t b = row / (H * L), h = row / L % H, i = row % L;
    std::vector<double> weight(S), keep(S, 1.0), grad_weight(S, 0.0), slope_of_weight(S, 0.0);
    double sum = 0;
    for (int64_t j = 0; j < S; ++j) {
      if (!c.is_visible(b, h, i, j)) continue;
      double score = 0;
      for (int64_t e = 0; e < E; ++e) score += q.row(b, h, i)[e] * k.row(b, h, j)[e];
      score *= problem.scale;
      if (c.settings.bias) score += c.bias_view<double>(c.bias).row(h, i)[j];
      const double u = (score - std::sqrt(0.5)) * std::sqrt(2 * std::numbers::pi);
      sum += weight[j] = c.settings.laplace ? 0.5 * std::erfc(-u) : std::exp(score);
      slope_of_weight[j] = std::numbers::sqrt2 * std::exp(-u * u);
      const int64_t plane = b * H + h;
      const uint32_t value = dropout_value(problem.dropout_key, static_cast<uint32_t>(plane),
                                           static_cast<uint32_t>(c.rank_of(plane, i)),
                                           static_cast<uint32_t>(c.rank_of(plane, j)));
      const double rate = problem.dropout_rate;
      keep[j] = value < dropout_threshold(rate) ? 0.0 : double{dropout_scale(rate)};
    }
    c.largest[row] = sum == 0 ? -std::numeric_limits<double>::infinity() : 0;
    c.sum[row] = sum;
    if (sum == 0) continue;
    if (c.settings.laplace) c.sum[row] = sum = 1;
    double mean = c.settings.grad_logsumexp ? -c.grad_logsumexp[row] : 0;
    for (int64_t j = 0; j < S; ++j) {
      weight[j] /= sum;
      for (int64_t e = 0; e < width; ++e) {
        out.row(b, h, i)[e] += keep[j] * weight[j] * v.row(b, h, j)[e];
        grad_v.row(b, h, j)[e] += keep[j] * weight[j] * grad_out.row(b, h, i)[e];
        grad_weight[j] += keep[j] * v.row(b, h, j)[e] * grad_out.row(b, h, i)[e];
      }
      mean += weight[j] * grad_weight[j];
    }
    for (int64_t j = 0; j < S; ++j) {
      const double slope = c.settings.laplace ? slope_of_weight[j] * grad_weight[j]
                                              : weight[j] * (grad_weight[j] - mean);
      if (c.settings.bias) grad_bias.row(h, i)[j] += slope;
      const double grad_score = problem.scale * slope;
      for (int64_t e = 0; e < E; ++e) {
        grad_q.row(b, h, i)[e] += grad_score * k.row(b, h, j)[e];
        grad_k.row(b, h, j)[e] += grad_score * q.row(b, h, i)[e];
      }
    }
  }
}

}  // namespace lra::kernels
