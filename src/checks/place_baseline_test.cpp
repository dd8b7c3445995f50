#include "checks/baseline.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "data/test_fixtures.h"

namespace lra::checks {
namespace {

// Accuracy on 200 examples of noise, of 30 to 30 + `spread` tokens; `mark` writes into them.
double accuracy(int64_t spread, int64_t num_towers,
                const std::function<void(std::vector<uint8_t>&, int32_t label)>& mark) {
  const TestFolder root;
  Manifest manifest = imported_manifest("text");
  manifest.num_towers = num_towers;
  DatasetWriter writer(root.path("data"), manifest, 0);
  RandomStream random(3);
  for (const char* name : {"train", "test"}) {
    writer.begin_split(name);
    for (int i = 0; i < 200; ++i) {
      const auto label = static_cast<int32_t>(random.below(2));
      std::vector<std::vector<uint8_t>> towers(static_cast<size_t>(num_towers));
      for (auto& tokens : towers) {
        tokens.resize(30 + random.below(static_cast<uint32_t>(spread) + 1));
        for (uint8_t& token : tokens) token = static_cast<uint8_t>(random.below(8));
      }
      mark(towers.back(), label);
      std::vector<std::span<const uint8_t>> sequences(towers.begin(), towers.end());
      writer.add(label, std::span<const std::span<const uint8_t>>(sequences));
    }
  }
  writer.finish();
  const Dataset data = Dataset::open(root.path("data"));
  return place_baseline(data.split("train"), data.split("test"), 2, num_towers).accuracy;
}

TEST(PlaceBaseline, FindsALabelThatStandsInTheInput) {
  const auto label_at = [](ptrdiff_t place) {
    return [place](std::vector<uint8_t>& tokens, int32_t label) {
      const ptrdiff_t index = place < 0 ? static_cast<ptrdiff_t>(tokens.size()) + place : place;
      tokens[static_cast<size_t>(index)] = static_cast<uint8_t>(label);
    };
  };
  for (const ptrdiff_t place : {0, 17, -1, -20}) {
    EXPECT_EQ(accuracy(0, 1, label_at(place)), 1) << place;
    EXPECT_EQ(accuracy(40, 1, label_at(place)), 1) << place;
    EXPECT_EQ(accuracy(40, 2, label_at(place)), 1) << place << ", in the second text";
  }
}

TEST(PlaceBaseline, IsNearChanceWithoutOne) {
  for (const int64_t num_towers : {1, 2}) {
    EXPECT_LT(accuracy(40, num_towers, [](std::vector<uint8_t>&, int32_t) {}), 0.65);
  }
}

}  // namespace
}  // namespace lra::checks
