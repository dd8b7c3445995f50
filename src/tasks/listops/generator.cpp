#include "tasks/listops/generator.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"
#include "data/draw_distinct.h"
#include "data/manifest.h"
#include "data/stopping.h"
#include "io/progress.h"
#include "tasks/listops/expression.h"

namespace lra::tasks {
namespace {

constexpr int kMaxTrees = 1000000;
constexpr int64_t kBlock = 2048;  // examples in memory at a time: 2 MB

// One word serves a whole node: two bits say whether it is an operator (exactly 1 in 4), the other
// thirty are mapped to [0, n) by Lemire's exact method. n <= 2^30.
constexpr uint32_t kLowBits = (1u << 30) - 1;

uint32_t below_from_word(RandomStream& random, uint32_t word, uint32_t n) {
  uint64_t product = uint64_t{word & kLowBits} * n;
  if ((product & kLowBits) < n) {
    const uint32_t threshold = (kLowBits + 1) % n;
    while ((product & kLowBits) < threshold) product = uint64_t{random.next_u32() & kLowBits} * n;
  }
  return static_cast<uint32_t>(product >> 30);
}

class TreeDrawer {
 public:
  TreeDrawer(const ListOpsSettings& settings, RandomStream& random)
      : settings_(settings), random_(random) {}

  // False when the tree is too long or too short. `length` counts every node of which it is known
  // that it will come, so a hopeless tree is abandoned before it is drawn out.
  bool draw(std::vector<uint8_t>& symbols) {
    symbols.clear();
    if (settings_.spine) return draw_spine(symbols);
    open_.clear();
    int64_t length = 1;
    do {
      const uint32_t word = random_.next_u32();
      const bool may_branch = static_cast<int64_t>(open_.size()) + 1 < settings_.max_depth;
      if (may_branch && (word >> 30) == 0) {
        const uint32_t num_args = draw_operator(word, symbols);
        length += 1 + num_args;
        if (length >= settings_.max_length) return false;
        open_.push_back(num_args);
        continue;
      }
      symbols.push_back(static_cast<uint8_t>(kListOpsDigit0 + below_from_word(random_, word, 10)));
      while (!open_.empty() && --open_.back() == 0) {
        symbols.push_back(kListOpsClose);
        open_.pop_back();
      }
    } while (!open_.empty());
    LRA_CHECK_EQ(length, static_cast<int64_t>(symbols.size()));
    return is_accepted(symbols);
  }

 private:
  bool is_accepted(const std::vector<uint8_t>& symbols) const {
    const auto length = static_cast<int64_t>(symbols.size());
    return length > settings_.min_length && length < settings_.max_length;
  }

  // Appends an operator, drawn with its number of arguments from one word.
  uint32_t draw_operator(uint32_t word, std::vector<uint8_t>& symbols) {
    const auto choices = static_cast<uint32_t>(settings_.max_args - settings_.min_args + 1);
    const auto operators = static_cast<uint32_t>(settings_.operators.size());
    const uint32_t choice = below_from_word(random_, word, choices * operators);
    symbols.push_back(settings_.operators[choice / choices]);
    return static_cast<uint32_t>(settings_.min_args) + choice % choices;
  }

  void draw_digits(uint32_t count, std::vector<uint8_t>& symbols) {
    for (uint32_t i = 0; i < count; ++i) {
      symbols.push_back(static_cast<uint8_t>(kListOpsDigit0 + random_.below(10)));
    }
  }

  bool draw_spine(std::vector<uint8_t>& symbols) {
    open_.clear();  // digits that follow the inner operator of each outer one
    for (int64_t depth = 1; depth < settings_.max_depth; ++depth) {
      const uint32_t num_args = draw_operator(random_.next_u32(), symbols);
      const bool is_innermost = depth + 1 == settings_.max_depth;
      const uint32_t before = is_innermost ? num_args : random_.below(num_args);
      draw_digits(before, symbols);
      open_.push_back(is_innermost ? 0 : num_args - 1 - before);
      if (static_cast<int64_t>(symbols.size()) >= settings_.max_length) return false;
    }
    for (; !open_.empty(); open_.pop_back()) {
      draw_digits(open_.back(), symbols);
      symbols.push_back(kListOpsClose);
    }
    return is_accepted(symbols);
  }

  const ListOpsSettings& settings_;
  RandomStream& random_;
  std::vector<uint32_t> open_;  // arguments still to come, per open operator
};

Error too_few(const std::string& what) {
  return Error({.where = "listops",
                .what = what,
                .expected = "settings that allow more expressions",
                .advice = "change min_length, max_length, max_depth, min_args or max_args"});
}

ListOpsExample draw_example(const ListOpsSettings& settings, uint64_t seed, int split,
                            int64_t index, uint32_t redraw) {
  ListOpsExample example{.split = split, .symbols = {}, .label = -1};
  const uint64_t key = derive_key(seed, RandomUse::kSample, static_cast<uint32_t>(split),
                                  static_cast<uint32_t>(index), redraw);
  draw_listops(settings, key, example.symbols);
  const ListOpsResult result = evaluate_listops(example.symbols);
  LRA_CHECK(result.ok());
  example.label = result.value;
  return example;
}

}  // namespace

void draw_listops(const ListOpsSettings& settings, uint64_t key, std::vector<uint8_t>& symbols) {
  RandomStream random(key);
  TreeDrawer drawer(settings, random);
  for (int tree = 0; tree < kMaxTrees; ++tree) {
    if (tree % 1024 == 0) throw_if_stopped();
    if (drawer.draw(symbols)) return;
  }
  throw too_few("none of a million drawn trees has an accepted length");
}

std::vector<std::string> generate_listops(const ListOpsSettings& settings, uint64_t seed,
                                          const std::array<int64_t, 3>& sizes,
                                          const ListOpsSink& sink, Progress& progress) {
  std::vector<std::string> notes;
  FirstSeen seen;
  seen.reserve(sizes[0] + sizes[1] + sizes[2]);
  for (int split = 0; split < 3; ++split) {
    const auto redrawn = [&](int64_t index, uint32_t times) {
      const std::string sample = "sample " + std::to_string(index) + " of " +
                                 kSplitNames[static_cast<size_t>(split)] + " drawn ";
      if (times > kMaxRedraws) {
        throw too_few(sample + std::to_string(kMaxRedraws) + " times was a duplicate each time");
      }
      notes.push_back(sample + "again " + std::to_string(times) + " times: duplicate");
    };
    draw_distinct(
        sizes[static_cast<size_t>(split)], kBlock, seen,
        [&](int64_t index, uint32_t redraw) {
          return draw_example(settings, seed, split, index, redraw);
        },
        [](const ListOpsExample& example) {
          return hash128(std::as_bytes(std::span(example.symbols)));
        },
        redrawn,
        [&](std::span<const ListOpsExample> examples) {
          sink(examples);
          progress.update(static_cast<int64_t>(examples.size()));
        });
  }
  return notes;
}

}  // namespace lra::tasks
