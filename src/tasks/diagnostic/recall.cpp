// Multi-query associative recall (Arora et al., Zoology: Measuring and Improving Recall in
// Efficient Language Models, 2023, arXiv:2312.04927, appendix E; HazyResearch/zoology,
// zoology/data/multiquery_ar.py).
//
// A sequence begins with `pairs` different keys, each followed by a value. Every key comes once
// more, and there the model answers with its value, which is not written behind it. The place of
// the second coming is slot g = 1, 2, ... of two tokens each with a probability proportional to
// g^(power - 1), each slot once; the other places are empty. Their ids plus one: 0 is padding here,
// 1 empty, then the keys, then as many values.
//
// Where we differ from that code: examples are a function of the seed, none is there twice, and
// empty places stay empty (its `random_non_queries = False`, as in the figures of the paper).
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tasks/all.h"
#include "tasks/diagnostic/drawn_task.h"

namespace lra::tasks {
namespace {

struct RecallConfig : DrawnSizes {
  int64_t length = 64, pairs = 4, vocabulary = 8192;
  double power = 0.01;

  void fields(auto& f) {
    f("length", length, "tokens of a sequence; even", between(4, 1 << 20));
    f("pairs", pairs, "keys with a value", between(1, 1 << 16));
    f("vocabulary", vocabulary,
      "tokens: one is empty, half of them are values, the others keys; even", between(4, 65534));
    f("power", power, "1: a key comes again anywhere; nearer 0: most come again soon",
      between(0.001, 1));
    size_fields(f, *this);
  }
  void check() const {
    const auto refuse = [](const char* where, int64_t value, const std::string& expected) {
      throw Error({.where = std::string("task.") + where,
                   .what = "is " + std::to_string(value),
                   .expected = expected});
    };
    if (length % 2 != 0) refuse("length", length, "an even number");
    if (vocabulary % 2 != 0) refuse("vocabulary", vocabulary, "an even number");
    if (4 * pairs > length) refuse("pairs", pairs, "at most a quarter of task.length");
    if (pairs > vocabulary / 2 - 1) refuse("pairs", pairs, "at most as many as there are keys");
  }
};

class RecallTask : public DrawnTask {
 public:
  explicit RecallTask(const RecallConfig& config)
      : DrawnTask(kRecallTask,
                  {.length = config.length,
                   .vocabulary = config.vocabulary + 1,
                   .num_classes = config.vocabulary / 2},
                  config,
                  {{"length", std::to_string(config.length)},
                   {"pairs", std::to_string(config.pairs)},
                   {"vocabulary", std::to_string(config.vocabulary)},
                   {"power", number_text(config.power)}}),
        config_(config),
        weights_(static_cast<size_t>((config.length - 2 * config.pairs) / 2)) {
    for (size_t g = 0; g < weights_.size(); ++g) {
      weights_[g] = std::pow(static_cast<double>(g + 1), config.power - 1);
    }
  }

  std::vector<PlaceLabel> place_labels(std::span<const int32_t> tokens) const override {
    const auto pairs = static_cast<size_t>(2 * config_.pairs);
    std::vector<PlaceLabel> labels;
    for (size_t place = pairs; place < tokens.size(); ++place) {
      if (!is_key(tokens[place])) continue;
      for (size_t at = 0; at < pairs; at += 2) {
        if (tokens[at] != tokens[place]) continue;
        labels.push_back(
            {static_cast<int64_t>(place), static_cast<int32_t>(tokens[at + 1] - first_value())});
      }
    }
    return labels;
  }

  std::string token_text(int32_t token) const override {
    if (token <= kEmpty) return ".";
    return is_key(token) ? "k" + std::to_string(token - kEmpty)
                         : "v" + std::to_string(token - first_value());
  }

 private:
  static constexpr int32_t kEmpty = 1;

  int64_t first_value() const { return kEmpty + config_.vocabulary / 2; }
  bool is_key(int32_t token) const { return token > kEmpty && token < first_value(); }

  // `count` different numbers below `n`.
  static std::vector<uint32_t> different(RandomStream& random, uint32_t n, int64_t count) {
    std::vector<uint32_t> found;
    while (found.size() < static_cast<size_t>(count)) {
      const uint32_t number = random.below(n);
      if (std::find(found.begin(), found.end(), number) == found.end()) found.push_back(number);
    }
    return found;
  }

  // Different slots, each of those that are left with a probability proportional to its weight.
  std::vector<size_t> slots(RandomStream& random) const {
    std::vector<double> left = weights_;
    std::vector<size_t> found;
    for (int64_t i = 0; i < config_.pairs; ++i) {
      double total = 0;
      for (const double weight : left) total += weight;
      double rest = random.uniform() * total;
      size_t slot = 0, last = 0;
      for (; slot < left.size(); ++slot) {
        if (left[slot] == 0) continue;
        last = slot;
        rest -= left[slot];
        if (rest < 0) break;
      }
      found.push_back(last);
      left[last] = 0;
    }
    return found;
  }

  std::vector<uint16_t> draw(RandomStream& random) const override {
    std::vector<uint16_t> tokens(static_cast<size_t>(config_.length), kEmpty);
    const auto half = static_cast<uint32_t>(config_.vocabulary / 2);
    const auto keys = different(random, half - 1, config_.pairs),
               values = different(random, half, config_.pairs);
    const std::vector<size_t> places = slots(random);
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto key = static_cast<uint16_t>(kEmpty + 1 + keys[i]);
      tokens[2 * i] = key;
      tokens[2 * i + 1] = static_cast<uint16_t>(first_value() + values[i]);
      tokens[2 * (keys.size() + places[i])] = key;
    }
    return tokens;
  }

  std::optional<checks::Baseline> own_baseline() const override {
    return checks::Baseline{.name = "any value of the sequence",
                            .accuracy = 1 / static_cast<double>(config_.pairs)};
  }

  RecallConfig config_;
  std::vector<double> weights_;  // of the slots
};

}  // namespace

constinit const TaskSpec kRecallTask = task_spec<RecallTask, RecallConfig>({
    .name = "recall",
    .title = "Associative recall",
    .summary = "the value of a key, at each of its second comings; diagnostic, not of the arena",
    .paper = "Arora et al. 2023, arXiv:2312.04927",
    .version = 1,
    .is_diagnostic = true,
    .labels_places = true,
});

}  // namespace lra::tasks
