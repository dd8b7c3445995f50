#include "tasks/pathfinder/split.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/permutation.h"
#include "base/rng.h"
#include "data/files.h"
#include "data/text_lines.h"
#include "io/atomic_file.h"

namespace lra::tasks {

std::array<int64_t, 3> tenths(int64_t count) {
  return {count - 2 * (count / 10), count / 10, count / 10};
}

Membership draw_membership(const std::array<int64_t, 3>& sizes, int64_t split_seed) {
  const int64_t count = sizes[0] + sizes[1] + sizes[2];
  Membership members;
  if (count == 0) return members;
  const Permutation order(static_cast<uint64_t>(count),
                          derive_key(static_cast<uint64_t>(split_seed), RandomUse::kSplit));
  int64_t next = 0;
  for (size_t split = 0; split < 3; ++split) {
    for (int64_t i = 0; i < sizes[split]; ++i) {
      members[split].push_back(static_cast<int64_t>(order(static_cast<uint64_t>(next++))));
    }
    std::sort(members[split].begin(), members[split].end());
  }
  return members;
}

std::string hash_of(const Membership& members) {
  Hasher hasher;
  for (const std::vector<int64_t>& images : members) {
    for (const int64_t image : images) hasher.append(std::to_string(image) + " ");
    hasher.append("\n");
  }
  return to_hex(hasher.digest());
}

Membership read_membership(const std::string& path, const std::vector<PathfinderRecord>& records) {
  std::unordered_map<std::string_view, int64_t> index;
  for (const PathfinderRecord& record : records) {
    index.emplace(record.path, static_cast<int64_t>(index.size()));
  }
  const auto refuse = [](const std::string& where, const std::string& what,
                         const std::string& expected) {
    throw Error({.where = where,
                 .what = what,
                 .expected = expected,
                 .advice = "without this file the split is drawn at random"});
  };
  constexpr uint64_t kMaxLineBytes = 256;  // a folder and a name of 100 characters each
  const std::string text = read_file(path, kMaxLineBytes * records.size());
  Membership members;
  read_lines(reader_of(text), path, [&](std::string_view line, int64_t number, uint64_t) {
    const size_t blank = std::min(line.find(' '), line.size());
    const auto image = index.find(line.substr(0, blank));
    const auto split = std::find(kSplitNames.begin(), kSplitNames.end(),
                                 line.substr(std::min(blank + 1, line.size())));
    if (image == index.end() || split == kSplitNames.end()) {
      refuse(path + ":" + std::to_string(number),
             "does not assign an image of the metadata to a split exactly once",
             "as 'imgs/0/sample_0.png train'");
    }
    members[static_cast<size_t>(split - kSplitNames.begin())].push_back(image->second);
    index.erase(image);
  });
  if (!index.empty()) {
    refuse(path, "leaves out " + std::to_string(index.size()) + " images",
           "every image of the metadata");
  }
  for (size_t split = 0; split < 3; ++split) {
    std::sort(members[split].begin(), members[split].end());
    if (!members[split].empty()) continue;
    refuse(path, std::string("assigns no image to ") + kSplitNames[split],
           "images of train, val and test");
  }
  return members;
}

Membership membership_of_source(const std::string& folder,
                                const std::vector<PathfinderRecord>& records, int64_t split_seed,
                                Manifest& manifest) {
  const std::array<int64_t, 3> usual = tenths(static_cast<int64_t>(records.size()));
  const std::string path = folder + "/" + kSplitsFile;
  if (!is_there(path)) return draw_membership(usual, split_seed);
  Membership members = read_membership(path, records);
  std::array<int64_t, 3> sizes{};
  for (size_t i = 0; i < 3; ++i) sizes[i] = static_cast<int64_t>(members[i].size());
  if (sizes != usual) {
    for (size_t i = 0; i < 3; ++i) {
      manifest.settings[std::string("num_") + kSplitNames[i]] = std::to_string(sizes[i]);
    }
  }
  if (members == draw_membership(sizes, split_seed)) return members;
  if (split_seed != kUsualSplitSeed) {
    throw Error({.where = path,
                 .what = "holds another split than task.split_seed gives",
                 .expected = "that of seed " + std::to_string(split_seed),
                 .advice = "leave task.split_seed out to take the file's, or move the file away"});
  }
  manifest.settings.erase("split_seed");
  return members;
}

}  // namespace lra::tasks
