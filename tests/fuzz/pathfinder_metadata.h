// The check that both kinds of Pathfinder metadata share.
#pragma once

#include "fuzz_target.h"
#include "tasks/pathfinder/files.h"

namespace lra::fuzz {

// Checks that accepted metadata are the same when their lines are written as text.
inline void check_pathfinder_metadata(std::span<const std::byte> file) {
  constexpr size_t kLongestLine = 400;
  std::vector<tasks::PathfinderRecord> records;
  if (!accepts([&] { records = tasks::parse_pathfinder_metadata(file, "0.npy"); })) return;
  std::string text;
  for (const tasks::PathfinderRecord& record : records) {
    LRA_CHECK(record.label == 0 || record.label == 1);
    LRA_CHECK(record.path.starts_with("imgs/") && record.path.find("..") != 5);
    if (record.line.size() > kLongestLine) return;
    text += record.line + "\n";
  }
  const auto again = tasks::parse_pathfinder_metadata(std::as_bytes(std::span(text)), "text");
  LRA_CHECK_EQ(again.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) LRA_CHECK(again[i].path == records[i].path);
}

}  // namespace lra::fuzz
