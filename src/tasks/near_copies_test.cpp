#include "tasks/near_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "base/rng.h"
#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

constexpr int kExamples = 50;

// Examples of 100 random bytes; those of the test are changed ones of train.
using Change = std::function<void(std::vector<uint8_t>&, RandomStream&)>;
NearCopies of_bytes(const Change& change, size_t length = 100, const Change& of_both = {}) {
  const TestFolder root;
  Manifest manifest = imported_manifest("text");
  manifest.token_offset = 1;
  DatasetWriter writer(root.path("data"), manifest, 0);
  RandomStream random(5);
  std::vector<std::vector<uint8_t>> examples(kExamples, std::vector<uint8_t>(length));
  for (auto& example : examples) {
    for (uint8_t& byte : example) byte = static_cast<uint8_t>(random.below(256));
    if (of_both) of_both(example, random);
  }
  for (const char* name : {"train", "test"}) {
    writer.begin_split(name);
    for (auto& example : examples) {
      if (name == std::string("test")) change(example, random);
      writer.add(0, std::span<const uint8_t>(example));
    }
  }
  writer.finish();
  return near_copies(Dataset::open(root.path("data")), "train", {"test"}).at(0);
}

TEST(NearCopies, AreExamplesWithAnotherTokenOrAPartLess) {
  using Bytes = std::vector<uint8_t>;
  const auto other_token = [](Bytes& e, RandomStream&) { e[20] = static_cast<uint8_t>(e[20] + 1); };
  const auto shifted = [](Bytes& e, RandomStream& random) {
    e.insert(e.begin(), static_cast<uint8_t>(random.below(256)));
  };
  const auto most_of_it = [](Bytes& e, RandomStream&) { e.resize(90); };
  const auto others = [](Bytes& e, RandomStream& random) {
    for (uint8_t& byte : e) byte = static_cast<uint8_t>(random.below(256));
  };
  const auto a_fifth = [](Bytes& e, RandomStream& random) {
    for (size_t i = 20; i < e.size(); ++i) e[i] = static_cast<uint8_t>(random.below(256));
  };
  for (const auto& change :
       {std::function<void(Bytes&, RandomStream&)>(other_token), {shifted}, {most_of_it}}) {
    const NearCopies found = of_bytes(change);
    EXPECT_EQ(found.num_judged, kExamples);
    EXPECT_EQ(found.num_near, kExamples);
  }
  const auto small_letters = [](Bytes& e, RandomStream&) {
    for (uint8_t& byte : e)
      byte = byte >= 'A' && byte <= 'Z' ? static_cast<uint8_t>(byte + 32) : byte;
  };
  EXPECT_EQ(of_bytes(small_letters).num_near, kExamples);
  EXPECT_EQ(of_bytes(others).num_near, 0);
  EXPECT_EQ(of_bytes([](Bytes& e, RandomStream&) { std::ranges::reverse(e); }).num_near, 0);
  EXPECT_EQ(of_bytes(a_fifth).num_near, 0);
  EXPECT_EQ(of_bytes(other_token, 30).num_judged, 0) << "too short";
  const auto bits = [](Bytes& e, RandomStream& random) {
    for (uint8_t& byte : e) byte = static_cast<uint8_t>(random.below(2));
  };
  EXPECT_EQ(of_bytes(bits, 256, bits).num_near, 0) << "two symbols";
}

TEST(NearCopies, AreValuesWithALittleNoiseInAnotherScaleOrReversed) {
  using Values = std::vector<float>;
  const TestFolder root;
  Manifest manifest = imported_manifest("custom");
  manifest.token_bytes = 8;  // two channels
  RandomStream random(5);
  const auto drawn = [&] { return static_cast<float>(random.below(2001)) / 1000 - 1; };
  const auto found_with = [&](const std::string& name, const std::function<void(Values&)>& change) {
    DatasetWriter writer(root.path(name), manifest, 0);
    std::vector<Values> examples(kExamples, Values(200));
    for (Values& example : examples) std::ranges::generate(example, drawn);
    for (const char* split : {"train", "test"}) {
      writer.begin_split(split);
      for (Values& example : examples) {
        if (split == std::string("test")) change(example);
        std::vector<uint32_t> words;
        for (const float value : example) words.push_back(std::bit_cast<uint32_t>(value));
        writer.add(0, std::vector<std::span<const uint32_t>>{words});
      }
    }
    writer.finish();
    return near_copies(Dataset::open(root.path(name)), "train", {"test"}).at(0).num_near;
  };
  const auto noise = [&](float size) {
    return [&drawn, size](Values& e) {
      for (float& value : e) value += size * drawn();
    };
  };
  EXPECT_EQ(found_with("close", noise(1e-3F)), kExamples);
  EXPECT_EQ(found_with("apart", noise(0.5F)), 0);
  EXPECT_EQ(found_with("window",
                       [&](Values& e) {  // a quarter of a recording later
                         std::ranges::rotate(e, e.begin() + 50);
                         std::ranges::generate(e.end() - 50, e.end(), drawn);
                       }),
            kExamples);
  EXPECT_EQ(found_with("scaled",
                       [](Values& e) {
                         for (float& value : e) value = 1.3F * value + 7;
                       }),
            kExamples);
  EXPECT_EQ(found_with("reversed",
                       [](Values& e) {
                         std::ranges::reverse(e);  // the channels too, so they change back
                         for (size_t i = 0; i < e.size(); i += 2) std::swap(e[i], e[i + 1]);
                       }),
            kExamples);
  EXPECT_EQ(found_with("negated",
                       [](Values& e) {
                         for (float& value : e) value = -value;
                       }),
            kExamples);
  EXPECT_EQ(found_with("other", [&](Values& e) { std::ranges::generate(e, drawn); }), 0);
}

// Pairs of which each half of the test is one of train: of the same pair, or of two.
TEST(NearCopies, OfPairsHaveBothTextsInCommon) {
  RandomStream random(5);
  std::vector<std::vector<uint8_t>> texts(2 * kExamples, std::vector<uint8_t>(100));
  for (auto& text : texts) {
    for (uint8_t& byte : text) byte = static_cast<uint8_t>(random.below(256));
  }
  const auto num_near = [&](size_t partner) {
    const TestFolder root;
    Manifest manifest = imported_manifest("retrieval");
    manifest.token_offset = 1;
    manifest.num_towers = 2;
    DatasetWriter writer(root.path("data"), manifest, 0);
    for (const char* name : {"train", "test"}) {
      const size_t apart = name == std::string("test") ? partner : 1;
      writer.begin_split(name);
      for (size_t i = 0; i < texts.size(); i += 2) {
        writer.add(
            0, std::vector<std::span<const uint8_t>>{texts[i], texts[(i + apart) % texts.size()]});
      }
    }
    writer.finish();
    return near_copies(Dataset::open(root.path("data")), "train", {"test"}).at(0).num_near;
  };
  EXPECT_EQ(num_near(3), 0);
  EXPECT_EQ(num_near(1), kExamples);
}

}  // namespace
}  // namespace lra::tasks
