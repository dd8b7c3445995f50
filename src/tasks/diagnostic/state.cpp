// State tracking: word problems of groups (Merrill, Petty and Sabharwal, The Illusion of State in
// State-Space Models, 2024, arXiv:2404.08819; jopetty/word-problem). A token is an element, drawn
// uniformly, and at every place the model answers with the product of all up to there.
//
// Where we differ from that code: no token begins the sequence, examples are a function of the
// seed, and none is there twice.
#include "tasks/diagnostic/state.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "tasks/all.h"
#include "tasks/diagnostic/drawn_task.h"

namespace lra::tasks {
namespace {

using Products = std::vector<std::vector<int32_t>>;

Products cyclic(int32_t order) {
  Products products(static_cast<size_t>(order));
  for (int32_t a = 0; a < order; ++a) {
    for (int32_t b = 0; b < order; ++b) {
      products[static_cast<size_t>(a)].push_back((a + b) % order);
    }
  }
  return products;
}

Products symmetric(size_t points) {
  std::vector<size_t> next(points);
  std::iota(next.begin(), next.end(), 0);
  std::vector<std::vector<size_t>> elements;
  std::map<std::vector<size_t>, int32_t> number;
  do {
    number[next] = static_cast<int32_t>(elements.size());
    elements.push_back(next);
  } while (std::ranges::next_permutation(next).found);
  Products products;
  for (const auto& a : elements) {
    auto& row = products.emplace_back();
    for (const auto& b : elements) {
      std::vector<size_t> product;
      for (const size_t i : a) product.push_back(b[i]);
      row.push_back(number.at(product));
    }
  }
  return products;
}

struct StateConfig : DrawnSizes {
  std::string group = "s3";
  int64_t length = 64, min_length = 0;

  void fields(auto& f) {
    f("group", group, "the group: bits, permutations of 3 or 5 things, or numbers modulo 60",
      one_of({"parity", "s3", "s5", "z60"}));
    f("length", length, "tokens of a sequence, at most", between(2, 1 << 20));
    f("min_length", min_length, "at least; 0: all have task.length", between(0, 1 << 20));
    size_fields(f, *this);
  }
  void check() const {
    if (min_length <= length) return;
    throw Error({.where = "task.min_length",
                 .what = "is " + std::to_string(min_length),
                 .expected = "at most task.length"});
  }
};

class StateTask : public DrawnTask {
 public:
  explicit StateTask(const StateConfig& config) : StateTask(config, products_of(config.group)) {}

  std::vector<PlaceLabel> place_labels(std::span<const int32_t> tokens) const override {
    std::vector<PlaceLabel> labels;
    int32_t state = 0;
    for (size_t place = 0; place < tokens.size(); ++place) {
      const auto element = static_cast<size_t>(tokens[place] - 1);
      if (element >= products_.size()) break;
      state = products_[static_cast<size_t>(state)][element];
      labels.push_back({static_cast<int64_t>(place), state});
    }
    return labels;
  }

  std::string token_text(int32_t token) const override { return std::to_string(token - 1); }

 private:
  StateTask(const StateConfig& config, Products products)
      : DrawnTask(kStateTask,
                  {.length = config.length,
                   .vocabulary = static_cast<int64_t>(products.size()) + 1,
                   .num_classes = static_cast<int64_t>(products.size())},
                  config,
                  {{"group", config.group},
                   {"length", std::to_string(config.length)},
                   {"min_length", std::to_string(config.min_length)}}),
        config_(config),
        products_(std::move(products)) {}

  std::vector<uint16_t> draw(RandomStream& random) const override {
    const int64_t shortest = config_.min_length > 0 ? config_.min_length : config_.length;
    const auto length =
        shortest + random.below(static_cast<uint32_t>(config_.length - shortest + 1));
    std::vector<uint16_t> tokens(static_cast<size_t>(length));
    for (uint16_t& token : tokens) {
      token = static_cast<uint16_t>(1 + random.below(static_cast<uint32_t>(products_.size())));
    }
    return tokens;
  }

  StateConfig config_;
  Products products_;
};

}  // namespace

std::vector<std::vector<int32_t>> products_of(std::string_view group) {
  if (group == "s3") return symmetric(3);
  if (group == "s5") return symmetric(5);
  return cyclic(group == "z60" ? 60 : 2);
}

constinit const TaskSpec kStateTask = task_spec<StateTask, StateConfig>({
    .name = "state",
    .title = "State tracking",
    .summary = "the product of all group elements so far, everywhere; diagnostic, not of the arena",
    .paper = "Merrill et al. 2024, arXiv:2404.08819",
    .version = 1,
    .is_diagnostic = true,
    .labels_places = true,
});

}  // namespace lra::tasks
