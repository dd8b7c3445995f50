#include "tasks/pathfinder/export.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/parallel.h"
#include "data/new_folder.h"
#include "data/png_image.h"
#include "data/stopping.h"
#include "io/atomic_file.h"
#include "tasks/pathfinder/split.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

void write_image(const Split& split, const char* name, int64_t example, int size,
                 const std::string& path) {
  const std::span<const uint8_t> pixels = split.stored_bytes(example);
  if (static_cast<int64_t>(pixels.size()) != int64_t{size} * size) {
    throw Error({.where = std::string(name) + " example " + std::to_string(example),
                 .what = "has " + std::to_string(pixels.size()) + " pixels",
                 .expected = std::to_string(size * size),
                 .advice = "see 'lra data check'"});
  }
  const std::string png = encode_png(
      GrayImage{.width = size, .height = size, .pixels = {pixels.begin(), pixels.end()}});
  NewFile(path).append(std::as_bytes(std::span(png)));
}

// The first number in a name, 0 when there is none.
int64_t number_in(const std::string& name) {
  const size_t digit = name.find_first_of("0123456789");
  return digit == std::string::npos ? 0 : std::stoll(name.substr(digit, 15));
}

// A file per batch, by the number of its folder; lines by the number of the image.
void write_metadata(const std::vector<PathfinderRecord>& records, const std::string& folder) {
  std::map<int64_t, std::map<std::pair<int64_t, std::string>, std::string>> batches;
  for (const PathfinderRecord& record : records) {
    const fs::path path(record.path);
    batches[number_in(path.parent_path().filename().string())]
           [{number_in(path.stem().string()), record.path}] = record.line;
  }
  make_folder(folder);
  for (const auto& [batch, lines] : batches) {
    std::string text;
    for (const auto& [image, line] : lines) text += line + "\n";
    NewFile(folder + "/" + std::to_string(batch) + ".npy").append(std::as_bytes(std::span(text)));
  }
}

void write_folder(const Dataset& dataset, const std::vector<PathfinderRecord>& records, int size,
                  const std::string& out) {
  std::set<std::string> folders;
  for (const PathfinderRecord& record : records) {
    folders.insert(out + "/" + fs::path(record.path).parent_path().string());
  }
  for (const std::string& folder : folders) make_folder(folder);
  std::string splits_text;
  size_t first = 0;
  for (const char* name : kSplitNames) {
    const Split split = dataset.split(name);
    parallel_for_each(split.size(), [&](int64_t i) {
      throw_if_stopped();
      write_image(split, name, i, size, out + "/" + records[first + static_cast<size_t>(i)].path);
    });
    for (int64_t i = 0; i < split.size(); ++i) {
      splits_text += records[first++].path + " " + name + "\n";
    }
  }
  write_metadata(records, out + "/metadata");
  NewFile(out + "/" + kSplitsFile).append(std::as_bytes(std::span(splits_text)));
}

}  // namespace

std::vector<PathfinderRecord> pathfinder_records(const Dataset& dataset) {
  const std::string content = dataset.read_side_file(kPathfinderLinesFile);
  const std::string name = dataset.folder() + "/" + kPathfinderLinesFile;
  std::vector<PathfinderRecord> records =
      parse_pathfinder_metadata(std::as_bytes(std::span(content)), name);
  size_t next = 0;
  bool agrees = true;
  for (const char* split_name : kSplitNames) {
    const Split split = dataset.split(split_name);
    for (int64_t i = 0; i < split.size(); ++i, ++next) {
      agrees = agrees && next < records.size() && records[next].label == split.label(i);
    }
  }
  if (!agrees || next != records.size()) {
    throw Error({.where = name,
                 .what = "does not agree with the examples",
                 .expected = "a line per example with its label",
                 .advice = "prepare the dataset again"});
  }
  return records;
}

void export_pathfinder(const Dataset& dataset, int size, const std::string& out) {
  const std::vector<PathfinderRecord> records = pathfinder_records(dataset);
  write_new_folder(
      out, [&](const std::string& partial) { write_folder(dataset, records, size, partial); });
}

std::string pathfinder_picture(std::span<const uint8_t> pixels, int size) {
  constexpr int kColumns = 64;
  constexpr uint8_t kLit = 96;
  const int shrink = std::max(1, size / kColumns), side = size / shrink;
  const auto is_lit = [&](int y, int x) {
    for (int dy = 0; dy < shrink; ++dy) {
      const uint8_t* begin = &pixels[static_cast<size_t>((y * shrink + dy) * size + x * shrink)];
      if (std::any_of(begin, begin + shrink, [](uint8_t pixel) { return pixel >= kLit; })) {
        return true;
      }
    }
    return false;
  };
  std::string text;
  for (int y = 0; y < side; y += 2) {
    for (int x = 0; x < side; ++x) {
      const bool above = is_lit(y, x), below = is_lit(y + 1, x);
      text += above ? (below ? "█" : "▀") : (below ? "▄" : " ");
    }
    text += "\n";
  }
  return text;
}

}  // namespace lra::tasks
