#include "tasks/pathfinder/check.h"

#include <algorithm>

#include "base/text_format.h"
#include "tasks/pathfinder/files.h"
#include "tasks/pathfinder/generator.h"
#include "tasks/pathfinder/split.h"

namespace lra::tasks {
namespace {

constexpr int64_t kMaxRedrawn = 64;  // per split

}  // namespace

std::map<std::string, int64_t> expected_pathfinder_sizes(const Manifest& manifest,
                                                         int64_t num_images) {
  std::map<std::string, int64_t> expected;
  for (size_t i = 0; i < 3; ++i) {
    const std::string split = kSplitNames[i];
    expected[split] = number_setting(manifest, "num_" + split).value_or(tenths(num_images)[i]);
    for (const std::string& note : manifest.notes) {
      expected[split] -= note.starts_with(kPathfinderSkipped + split + ":");
    }
  }
  return expected;
}

// The archive has an empty file; what is damaged otherwise, or many empty ones, is a bad copy.
checks::Fact skipped_images_fact(const Manifest& manifest) {
  constexpr int64_t kMostEmpty = 8;
  checks::Fact fact{.name = "images skipped"};
  int64_t count = 0;
  for (const std::string& note : manifest.notes) {
    if (!note.starts_with(kPathfinderSkipped)) continue;
    const bool is_empty = note.ends_with(kEmptyPathfinderImage);
    if (count++ == 0 || (fact.ok && !is_empty)) fact.detail = note;
    fact.ok = fact.ok && is_empty && count <= kMostEmpty;
  }
  fact.value = thousands(count);
  return fact;
}

checks::Fact redrawn_images_fact(const Dataset& dataset, const PathfinderSettings& settings) {
  checks::Fact fact{.name = "images drawn again", .value = "0", .ok = false};
  const auto seed = number_setting<uint64_t>(dataset.manifest(), "seed");
  if (!seed) {
    fact.detail = "the manifest names no seed";
    return fact;
  }
  fact.ok = true;
  const PathfinderGenerator generator(settings, *seed);
  std::array<int64_t, 3> counts{};
  for (size_t i = 0; i < 3; ++i) counts[i] = dataset.split(kSplitNames[i]).size();
  const Membership members =
      draw_membership(counts, number_setting(dataset.manifest(), "split_seed").value_or(0));
  int64_t num_drawn = 0;
  for (size_t k = 0; k < 3; ++k) {
    const Split split = dataset.split(kSplitNames[k]);
    const int64_t apart = std::max<int64_t>(1, (split.size() + kMaxRedrawn - 1) / kMaxRedrawn);
    for (int64_t i = 0; i < split.size(); i += apart, ++num_drawn) {
      const PathfinderImage image = generator.draw(members[k][static_cast<size_t>(i)]);
      const std::span<const uint8_t> stored = split.stored_bytes(i);
      if (image.label == split.label(i) && std::ranges::equal(image.pixels, stored)) continue;
      if (!fact.ok) continue;
      fact.ok = false;
      fact.detail = std::string(kSplitNames[k]) + " example " + std::to_string(i) +
                    " is not the image of its number";
    }
  }
  fact.value = thousands(num_drawn);
  return fact;
}

}  // namespace lra::tasks
