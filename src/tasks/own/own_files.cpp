#include "tasks/own/own_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/quoted.h"
#include "data/files.h"
#include "tasks/own/examples.h"
#include "tasks/own/tables.h"

namespace lra::tasks {
namespace {

constexpr const char* kEndings = ".jsonl, .csv, .tsv, .parquet or .npz";

bool is_readable(const std::string& path) { return has_ending(path, ".npz") || is_table(path); }

// "train-" and 0 of 3 for "train-00000-of-00003.csv".
struct ShardName {
  std::string before;
  int64_t number = 0, count = 0;
};

std::optional<ShardName> shard_name(const std::string& path) {
  constexpr std::string_view kOf = "-of-", kDigits = "0123456789";
  const size_t of = path.rfind(kOf);
  if (of == std::string::npos) return std::nullopt;
  const size_t before = path.find_last_not_of(kDigits, of - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  ShardName name{.before = path.substr(0, begin)};
  const auto read = [&](size_t at, int64_t& number) {
    const auto [end, problem] =
        std::from_chars(path.data() + at, path.data() + path.size(), number);
    return problem == std::errc();
  };
  const bool is_one = of > begin && read(begin, name.number) && read(of + kOf.size(), name.count);
  return is_one ? std::optional(name) : std::nullopt;
}

// "train-" and 2 for "train-2.csv", "a/part" and 0 for "a/part0.csv". Only names of splits and
// parts: years, sizes and persons are numbers, too.
std::optional<std::pair<std::string, int64_t>> numbered_name(const std::string& path) {
  constexpr std::array<std::string_view, 4> kParts = {"part", "shard", "chunk", "split"};
  const std::string name = path.substr(0, path.rfind('.'));
  const std::string before = name.substr(0, name.find_last_not_of("0123456789") + 1);
  std::string word = before.substr(0, before.find_last_not_of("-_. ") + 1);
  word = word.substr(word.find_last_of("/-_. ") + 1);
  int64_t number = 0;
  const char* end = name.data() + name.size();
  if (std::from_chars(name.data() + before.size(), end, number).ec != std::errc()) return {};
  if (split_of_name(word).empty() && std::ranges::find(kParts, word) == kParts.end()) return {};
  return std::pair{before, number};
}

// Several parts that are numbered from 0 or 1 on, with a number left out.
void refuse_gaps(const std::vector<std::string>& files) {
  std::map<std::string, std::set<int64_t>> found;
  for (const std::string& file : files) {
    if (shard_name(file)) continue;
    if (const auto name = numbered_name(file)) found[name->first].insert(name->second);
  }
  for (const auto& [before, numbers] : found) {
    const int64_t least = *numbers.begin(), most = *numbers.rbegin();
    const auto count = static_cast<int64_t>(numbers.size());
    if (count < 2 || least > 1 || most > 2 * count || most - least + 1 == count) continue;
    int64_t missing = least;
    while (numbers.contains(missing)) ++missing;
    refuse_data(before + "...",
                "number " + std::to_string(missing) + " is missing among " + std::to_string(count) +
                    " files numbered " + std::to_string(least) + " to " + std::to_string(most),
                "all of them", "fetch the others, or rename the files if they are complete");
  }
}

void refuse_missing_shards(const std::vector<std::string>& files) {
  std::map<std::pair<std::string, int64_t>, std::set<int64_t>> found;
  for (const std::string& file : files) {
    if (const auto name = shard_name(file)) {
      found[{name->before, name->count}].insert(name->number);
    }
  }
  for (const auto& [set, numbers] : found) {
    const auto& [before, count] = set;
    if (static_cast<int64_t>(numbers.size()) == count) continue;
    refuse_data(before + "...-of-" + std::to_string(count),
                "only " + std::to_string(numbers.size()) + " of the " + std::to_string(count) +
                    " files are there",
                "all of them", "fetch the others, or rename the files if they are complete");
  }
}

}  // namespace

std::vector<std::string> own_files(const std::vector<std::string>& sources) {
  std::vector<std::string> files;
  for (const std::string& source : sources) {
    if (!is_folder(source)) {
      if (!is_readable(source)) refuse_data(source, "has an unknown ending", kEndings);
      files.push_back(source);
      continue;
    }
    const size_t before = files.size();
    for (const std::string& name : data_names_in(source)) {
      if (is_readable(name)) files.push_back(source + "/" + name);
    }
    if (files.size() == before) refuse_data(source, "holds no file that can be read", kEndings);
  }
  refuse_missing_shards(files);
  refuse_gaps(files);
  return files;
}

}  // namespace lra::tasks
