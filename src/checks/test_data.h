// Small datasets of tests, from examples in memory.
#pragma once

#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "checks/check_table.h"
#include "data/test_fixtures.h"

namespace lra::checks {

struct TestExample {
  std::vector<float> numbers = {};  // values, `channels` at each position, or ids
  std::string text = {};
  int32_t label = 0;
};
using TestSplits = std::map<std::string, std::vector<TestExample>>;

// Writes the examples into a new folder below `root`.
inline Dataset write_examples(const TestFolder& root, const TestSplits& splits, InputKind input,
                              int64_t channels = 1) {
  static int count = 0;
  Manifest manifest = imported_manifest("custom");
  const bool are_values = input == InputKind::kValues;
  manifest.token_bytes = are_values ? 4 * channels : input == InputKind::kTokens ? 2 : 1;
  manifest.token_offset = are_values || input == InputKind::kPixels ? 0 : 1;
  const std::string folder = root.path("data" + std::to_string(count++));
  DatasetWriter writer(folder, manifest, 0);
  for (const char* name : kSplitNames) {
    if (!splits.contains(name)) continue;
    writer.begin_split(name);
    for (const TestExample& example : splits.at(name)) {
      std::vector<uint32_t> words;
      std::vector<uint16_t> ids;
      std::vector<uint8_t> bytes(example.text.begin(), example.text.end());
      for (const float number : example.numbers) {
        words.push_back(std::bit_cast<uint32_t>(number));
        ids.push_back(static_cast<uint16_t>(number));
        bytes.push_back(static_cast<uint8_t>(number));
      }
      const auto add = [&](const auto& stored) {
        const std::vector<std::span<const typename std::decay_t<decltype(stored)>::value_type>>
            one = {stored};
        writer.add(example.label, std::span(one));
      };
      are_values ? add(words) : input == InputKind::kTokens ? add(ids) : add(bytes);
    }
  }
  writer.finish();
  return Dataset::open(folder);
}

// A wave whose frequency is the class, with noise: each drawn on its own.
inline std::vector<TestExample> waves(int64_t count, uint64_t seed, int32_t classes = 2,
                                      int length = 60, int channels = 1) {
  RandomStream random(seed);
  std::vector<TestExample> examples;
  for (int64_t i = 0; i < count; ++i) {
    TestExample& example = examples.emplace_back();
    example.label = static_cast<int32_t>(i % classes);
    const double phase = 6.28 * random.uniform();
    for (int t = 0; t < length; ++t) {
      for (int c = 0; c < channels; ++c) {
        example.numbers.push_back(static_cast<float>(
            std::sin((0.2 + 0.15 * example.label) * t + phase + c * c) + random.normal() / 2));
      }
    }
  }
  return examples;
}

// Sentences of common words.
inline std::vector<TestExample> sentences(int64_t count, uint64_t seed) {
  constexpr const char* kWords[] = {
      "the", "a",   "of",  "film", "and",  "to",  "plot", "in",   "it",   "was",  "that",
      "he",  "for", "on",  "are",  "with", "as",  "they", "be",   "from", "have", "music",
      "one", "had", "not", "but",  "what", "all", "were", "when", "we",   "there"};
  RandomStream random(seed);
  std::vector<TestExample> examples;
  for (int64_t i = 0; i < count; ++i) {
    TestExample& example = examples.emplace_back();
    example.label = static_cast<int32_t>(i % 2);
    example.text = "It";
    const uint32_t num_words = 20 + random.below(40);
    for (uint32_t k = 0; k < num_words; ++k) {
      example.text += std::string(" ") + kWords[random.below(std::size(kWords))];
    }
    example.text += random.below(5) > 0 ? (example.label ? " good." : " bad.") : " so so.";
  }
  return examples;
}

// Ids of words, the small ones more often.
inline std::vector<TestExample> id_lists(int64_t count, uint64_t seed, int classes = 2) {
  RandomStream random(seed);
  std::vector<TestExample> examples;
  for (int64_t i = 0; i < count; ++i) {
    TestExample& example = examples.emplace_back();
    example.label = static_cast<int32_t>(i % classes);
    const uint32_t length = 20 + random.below(30);
    for (uint32_t k = 0; k < length; ++k) {
      example.numbers.push_back(static_cast<float>(1 + random.below(1 + random.below(200))));
    }
  }
  return examples;
}

// Gray pictures, 16 x 16: a smooth spot on a black border.
inline std::vector<TestExample> pictures(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<TestExample> examples;
  for (int64_t i = 0; i < count; ++i) {
    TestExample& example = examples.emplace_back();
    example.label = static_cast<int32_t>(i % 2);
    const double x = 5 + 6 * random.uniform(), y = 5 + 6 * random.uniform();
    const double width = example.label == 0 ? 4 : 8;
    for (int p = 0; p < 256; ++p) {
      const bool is_border = p % 16 < 2 || p % 16 > 13 || p / 16 < 2 || p / 16 > 13;
      const double apart = std::pow(p % 16 - x, 2) + std::pow(p / 16 - y, 2);
      const double value = 240 * std::exp(-apart / width) + 8 * random.uniform();
      example.numbers.push_back(is_border ? 0 : static_cast<float>(std::floor(value)));
    }
  }
  return examples;
}

}  // namespace lra::checks
