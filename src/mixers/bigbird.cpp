// BigBird (Zaheer et al. 2020, arXiv:2007.14062, section 2 and appendix D; the internal transformer
// construction): the sequence is cut into blocks, and a block of queries attends, in one softmax,
// to the first and the last block, to itself and its two neighbors, and to random blocks. The
// first and the last block attend to everything.
//
// Rulings. The random blocks of a query block are drawn without replacement, per layer and head,
// from those that it does not attend to already; all of them if there are too few. They are a
// function of the run's seed and of the number of blocks, not of the step. "Last block" and the
// candidates are those of the valid length of each example, so that padding changes nothing; the
// last block may be short. With `causal`, which the paper does not have, the pattern is the same
// without later tokens. Attention weights are dropped as in any other mechanism; the released
// code does not (docs/deviations.md, 12).
#include <algorithm>
#include <map>

#include "base/rng.h"
#include "mixers/sequence_layer.h"
#include "mixers/specs/bigbird.h"
#include "ops/attention/attention.h"

namespace lra::mixers {
namespace {

constexpr int64_t kReleasedRange = 1024;  // tokens

// Compressed rows: the key blocks of row r are key_blocks[offsets[r]] .. [offsets[r + 1] - 1].
struct BlockRows {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> key_blocks;

  void add(int64_t key_block) { key_blocks.push_back(static_cast<int32_t>(key_block)); }
  void end_row() { offsets.push_back(static_cast<int64_t>(key_blocks.size())); }
  void append(const BlockRows& other) {
    const int64_t shift = offsets.back();
    for (size_t r = 1; r < other.offsets.size(); ++r) offsets.push_back(shift + other.offsets[r]);
    key_blocks.insert(key_blocks.end(), other.key_blocks.begin(), other.key_blocks.end());
  }
  void append_empty_rows(int64_t count) { offsets.insert(offsets.end(), count, offsets.back()); }
};

// End of the last token of each row: mask [B, L] -> int32 [B].
at::Tensor lengths_of(const at::Tensor& mask_BL) {
  const int64_t batch = mask_BL.size(0), length = mask_BL.size(1);
  at::Tensor lengths_B = at::empty({batch}, at::kInt);
  for (int64_t b = 0; b < batch; ++b) {
    const uint8_t* row = mask_BL.const_data_ptr<uint8_t>() + b * length;
    int64_t valid = length;
    while (valid > 0 && row[valid - 1] == 0) --valid;
    lengths_B.mutable_data_ptr<int32_t>()[b] = static_cast<int32_t>(valid);
  }
  return lengths_B;
}

class BigBird : public SelfAttention {
 public:
  using Config = BigBirdConfig;

  BigBird(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : SelfAttention(init, shape),
        config_(config),
        heads_(shape.attention.heads),
        pattern_key_(init.of("pattern").key()) {}

  at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) override {
    const auto pattern = pattern_of(x_BLD.size(1), valid_blocks(x_BLD, context));
    return attended(x_BLD, pattern, context.mask_BL, context);
  }

 private:
  int64_t blocks_of(int64_t length) const { return (length + config_.block - 1) / config_.block; }

  // Number of blocks that hold all valid tokens, for each example; one number if it is the same for
  // all.
  std::vector<int64_t> valid_blocks(const at::Tensor& x_BLD, const layers::Context& context) const {
    if (!context.mask_BL.defined()) return {blocks_of(x_BLD.size(1))};
    const at::Tensor lengths_B = context.lengths_B.defined()
                                     ? context.lengths_B.contiguous()
                                     : lengths_of(context.mask_BL.to(at::kCPU).contiguous());
    std::vector<int64_t> counts;
    for (int64_t b = 0; b < lengths_B.numel(); ++b) {
      counts.push_back(blocks_of(lengths_B.const_data_ptr<int32_t>()[b]));
    }
    const bool same = std::equal(counts.begin() + 1, counts.end(), counts.begin());
    return same ? std::vector<int64_t>{counts[0]} : counts;
  }

  // Lists for `length` tokens: one per head, or one per example and head.
  ops::AttentionPattern pattern_of(int64_t length, const std::vector<int64_t>& valid_blocks) {
    BlockRows rows;
    for (const int64_t blocks : valid_blocks) {
      for (const BlockRows& head : heads_of(blocks)) {
        rows.append(head);
        rows.append_empty_rows(blocks_of(length) - blocks);
      }
    }
    return {.offsets = at::tensor(rows.offsets, at::kLong),
            .key_blocks = at::tensor(rows.key_blocks, at::kInt),
            .query_block = config_.block,
            .key_block = config_.block,
            .right = config_.causal ? 0 : -1};
  }

  // The rows of every head for a sequence of `blocks` blocks, drawn once.
  const std::vector<BlockRows>& heads_of(int64_t blocks) {
    std::vector<BlockRows>& heads = drawn_[blocks];
    for (auto h = static_cast<uint32_t>(heads.size()); h < heads_; ++h) {
      RandomStream stream(
          derive_key(pattern_key_, RandomUse::kMixer, h, static_cast<uint32_t>(blocks)));
      BlockRows& rows = heads.emplace_back();
      for (int64_t i = 0; i < blocks; ++i) {
        add_row(i, blocks, stream, rows);
        rows.end_row();
      }
    }
    return heads;
  }

  void add_row(int64_t query, int64_t blocks, RandomStream& stream, BlockRows& rows) const {
    const int64_t last = blocks - 1;
    if (query == 0 || query == last) {
      for (int64_t j = 0; j < blocks; ++j) rows.add(j);
      return;
    }
    for (int64_t j = query - 1; j <= query + 1; ++j) rows.add(j);
    if (query - 1 > 0) rows.add(0);
    if (query + 1 < last) rows.add(last);
    add_random(query, last, stream, rows);
  }

  // Candidates are 1 .. query - 2 and query + 2 .. last - 1, numbered in this order.
  void add_random(int64_t query, int64_t last, RandomStream& stream, BlockRows& rows) const {
    int64_t end = last;
    if (config_.random_range != "all") end = std::min(end, kReleasedRange / config_.block);
    const int64_t before = std::max<int64_t>(0, std::min(query - 1, end) - 1);
    const int64_t candidates = before + std::max<int64_t>(0, end - (query + 2));
    const auto block_of = [&](int64_t c) { return c < before ? 1 + c : query + 2 + (c - before); };
    if (candidates <= config_.random_blocks) {
      for (int64_t c = 0; c < candidates; ++c) rows.add(block_of(c));
      return;
    }
    const size_t first = rows.key_blocks.size();
    while (rows.key_blocks.size() < first + static_cast<size_t>(config_.random_blocks)) {
      const int64_t block = block_of(stream.below(static_cast<uint32_t>(candidates)));
      const auto begin = rows.key_blocks.begin() + static_cast<int64_t>(first);
      if (std::find(begin, rows.key_blocks.end(), block) == rows.key_blocks.end()) rows.add(block);
    }
  }

  Config config_;
  int64_t heads_;
  uint64_t pattern_key_;
  std::map<int64_t, std::vector<BlockRows>> drawn_;  // by number of blocks
};

}  // namespace

constinit const LayerMaker kMakeBigBird = make_layer<BigBird>;

}  // namespace lra::mixers
