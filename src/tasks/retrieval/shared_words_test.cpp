#include "tasks/retrieval/shared_words.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "data/dataset.h"
#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

// Pairs of texts of twenty words out of a hundred; linked ones share `shared` of them. With
// `random` labels, these are drawn.
Dataset pairs(const std::string& folder, uint32_t shared, bool random) {
  Manifest manifest = imported_manifest("retrieval");
  manifest.num_towers = 2;
  DatasetWriter writer(folder, std::move(manifest), 0);
  RandomStream draw(3);
  const auto word = [&](char first) {
    return std::string(1, first) + "word" + std::string(1 + draw.below(50), 'x') + " ";
  };
  for (const char* name : {"train", "test"}) {
    writer.begin_split(name);
    for (int32_t i = 0; i < 400; ++i) {
      std::string a, b;
      for (uint32_t k = 0; k < 20; ++k) {
        a += word('a');
        b += word('b');
      }
      for (uint32_t k = 0; k < (i % 2 == 1 ? shared : 0); ++k) {
        const std::string both = word('c');
        a += both;
        b += both;
      }
      const auto bytes = [](const std::string& text) {
        return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
      };
      const std::array<std::span<const uint8_t>, 2> texts = {bytes(a), bytes(b)};
      writer.add(random ? static_cast<int32_t>(draw.below(2)) : i % 2, texts);
    }
  }
  writer.finish();
  return Dataset::open(folder);
}

TEST(SharedWords, TellLinkedPairs) {
  const TestFolder root;
  const Dataset data = pairs(root.path("data"), 5, false);
  EXPECT_GT(shared_words_baseline(data.split("train"), data.split("test")).accuracy, 0.95);
}

TEST(SharedWords, TellNothingOfRandomLabels) {
  const TestFolder root;
  const Dataset data = pairs(root.path("data"), 5, true);
  EXPECT_LT(shared_words_baseline(data.split("train"), data.split("test")).accuracy, 0.6);
}

}  // namespace
}  // namespace lra::tasks
