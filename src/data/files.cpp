#include "data/files.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/quoted.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

namespace fs = std::filesystem;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

}  // namespace

bool is_clutter(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"desktop.ini", "thumbs.db", "ehthumbs.db",
                                                      "__macosx", "icon\r"};
  return name.starts_with('.') || std::ranges::find(kNames, lower_case(name)) != kNames.end();
}

bool has_clutter(std::string_view path) {
  return std::ranges::any_of(fs::path(path), [](const fs::path& part) {
    return part != "." && part != ".." && is_clutter(part.native());
  });
}

std::vector<std::string> data_names_in(const std::string& folder) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [](const std::string& name) { return is_clutter(name); });
  std::ranges::sort(names);
  return names;
}

bool has_ending(const fs::path& path, std::string_view ending) {
  return lower_case(path.native()).ends_with(ending);
}

uint64_t size_of_files(std::span<const std::string> paths) {
  uint64_t bytes = 0;
  for (const std::string& path : paths) {
    std::error_code unreadable;
    const uintmax_t size = fs::file_size(path, unreadable);
    if (!unreadable) bytes += size;
  }
  return bytes;
}

std::vector<std::string> find_file_set(const std::string& root, const FileSet& set) {
  fs::path partly;  // the first folder that has some of them
  for (const std::string& below : set.folders) {
    const fs::path folder =
        below == "." ? fs::path(root) : (fs::path(root) / below).lexically_normal();
    const auto is_here = [&](const std::string& file) { return is_there(folder / file); };
    if (std::ranges::all_of(set.files, [&](const auto& file) { return is_file(folder / file); })) {
      std::vector<std::string> paths;
      for (const std::string& file : set.files) paths.push_back((folder / file).string());
      return paths;
    }
    if (partly.empty() && std::ranges::any_of(set.files, is_here)) partly = folder;
  }
  if (partly.empty()) return {};
  std::vector<std::string> found, missing;
  for (const std::string& file : set.files) {
    (is_file(partly / file) ? found : missing).push_back(file);
  }
  throw Error({.where = partly.string(),
               .what = "holds some of " + set.title + ", not all: " + quoted_list(missing, 8) +
                       (missing.size() == 1 ? " is" : " are") + " missing",
               .expected = quoted_list(set.files, 8),
               .advice = "complete the folder, or rename it if it is something else"});
}

}  // namespace lra
