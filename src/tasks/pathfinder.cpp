// Pathfinder and Path-X (Linsley et al., NeurIPS 2018; Tay et al., ICLR 2021, section 2.2.5): are
// the two marked points joined by a dashed path? Pixels are tokens, row by row; none is padding.
//
// The authors never published which images form their splits. Here image i of the official order
// goes to train, val or test by a permutation keyed by split_seed: 80, 10 and 10 percent. An
// export also writes the membership as splits.txt, which an import follows.
#include "tasks/pathfinder.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "tasks/brightness_baseline.h"
#include "tasks/facts.h"
#include "tasks/files.h"
#include "tasks/pathfinder_files.h"
#include "tasks/pathfinder_generator.h"
#include "tasks/pathfinder_split.h"
#include "tasks/png_image.h"
#include "tasks/stopping.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kVersion = 1;
constexpr int64_t kNumClasses = 2;
constexpr int64_t kBlock = 256;  // images in memory at a time: 16 MB at 256 x 256
// The metadata lines of all images, in the order train, val, test: what the pixels do not say.
constexpr const char* kLinesFile = "metadata.txt";

struct PathfinderConfig {
  std::string difficulty = "hard";
  int64_t num_images = 200000;
  int64_t split_seed = 0;

  void fields(auto& f) {
    f("difficulty", difficulty, "dashes per target contour: 6, 9 or 14",
      one_of({"easy", "intermediate", "hard"}));
    f("num_images", num_images, "images generated, and expected by lra data check",
      between(10, 1e8));
    f("split_seed", split_seed, "decides which images are held out", at_least(0));
  }
};

std::string task_name(int size) { return "pathfinder" + std::to_string(size); }

class PathfinderTask : public Task {
 public:
  PathfinderTask(int size, const PathfinderConfig& config) : config_(config) {
    settings_.size = size;
    const auto found = std::find(kDifficulties.begin(), kDifficulties.end(), config.difficulty);
    settings_.difficulty = static_cast<int>(found - kDifficulties.begin());
  }

  TaskShape shape() const override {
    return {.length = num_pixels(),
            .vocabulary = 256,
            .num_classes = kNumClasses,
            .num_towers = 1,
            .has_padding = false};
  }
  bool can_generate() const override { return true; }
  int64_t num_to_make(const MakeOptions& options) const override;
  void make(const MakeOptions& options, Progress& progress) const override;
  void import(const std::vector<std::string>& sources, const std::string& out,
              Progress& progress) const override;
  std::vector<std::string> find_sources(const std::string& root) const override;
  void export_official(const Dataset& dataset, const std::string& out) const override;
  std::vector<Fact> check(const Dataset& dataset) const override;
  std::string render(const Split& split, int64_t example) const override;
  std::vector<Baseline> baselines(const Dataset& dataset) const override;

 private:
  int64_t num_pixels() const { return int64_t{settings_.size} * settings_.size; }
  std::string level_folder() const {
    return std::string(kDifficultyFolders[static_cast<size_t>(settings_.difficulty)]);
  }
  std::array<int64_t, 3> sizes(const MakeOptions& options) const;
  Manifest new_manifest(const std::string& source) const;
  std::vector<PathfinderRecord> records_of(const Dataset& dataset) const;

  PathfinderConfig config_;
  PathfinderSettings settings_;
};

std::array<int64_t, 3> PathfinderTask::sizes(const MakeOptions& options) const {
  const std::array<int64_t, 3> own = tenths(config_.num_images);
  return {options.num_train.value_or(own[0]), options.num_val.value_or(own[1]),
          options.num_test.value_or(own[2])};
}

Manifest PathfinderTask::new_manifest(const std::string& source) const {
  Manifest manifest;
  manifest.task = task_name(settings_.size);
  manifest.task_version = kVersion;
  manifest.source = source;
  manifest.settings = {{"difficulty", config_.difficulty},
                       {"split_seed", std::to_string(config_.split_seed)}};
  return manifest;
}

int64_t PathfinderTask::num_to_make(const MakeOptions& options) const {
  const std::array<int64_t, 3> counts = sizes(options);
  return counts[0] + counts[1] + counts[2];
}

void PathfinderTask::make(const MakeOptions& options, Progress& progress) const {
  const std::array<int64_t, 3> counts = sizes(options);
  for (const int64_t count : counts) {
    if (count >= 0 && count <= 100000000) continue;
    throw Error({.where = "lra data make",
                 .what = std::to_string(count) + " examples",
                 .expected = "0 to 100,000,000 per split",
                 .advice = ""});
  }
  Manifest manifest = new_manifest("generated");
  manifest.settings["seed"] = std::to_string(options.seed);
  for (size_t i = 0; i < 3; ++i) {
    manifest.settings[std::string("num_") + kPathfinderSplits[i]] = std::to_string(counts[i]);
  }
  std::string all_settings = manifest.task + "\n";
  for (const auto& [key, value] : manifest.settings) all_settings += key + "=" + value + "\n";
  manifest.source_hash = to_hex(hash128(all_settings));
  DatasetWriter writer(options.out, std::move(manifest),
                       num_to_make(options) * (num_pixels() + 90));
  const PathfinderGenerator generator(settings_, options.seed);
  const Membership members = draw_membership(counts, config_.split_seed);
  std::string lines;
  for (size_t split = 0; split < 3; ++split) {
    writer.begin_split(kPathfinderSplits[split]);
    const std::vector<int64_t>& images = members[split];
    for (size_t begin = 0; begin < images.size(); begin += kBlock) {
      throw_if_stopped();
      std::vector<PathfinderImage> block(std::min<size_t>(kBlock, images.size() - begin));
      parallel_for_each(static_cast<int64_t>(block.size()), [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        block[at] = generator.draw(images[begin + at]);
      });
      for (size_t i = 0; i < block.size(); ++i) {
        writer.add(block[i].label, block[i].pixels);
        lines += pathfinder_line(settings_, images[begin + i], block[i].label, block[i].margin);
        lines += '\n';
      }
      progress.update(static_cast<int64_t>(block.size()));
    }
  }
  writer.add_side_file(kLinesFile, lines);
  writer.finish();
}

void PathfinderTask::import(const std::vector<std::string>& sources, const std::string& out,
                            Progress& progress) const {
  if (sources.size() != 1) {
    throw Error({.where = "lra data import " + task_name(settings_.size),
                 .what = std::to_string(sources.size()) + " sources",
                 .expected = "one: the folder that holds " + level_folder(),
                 .advice = ""});
  }
  const std::string level = sources[0] + "/" + level_folder();
  const std::string folder = is_folder(level) ? level : sources[0];
  const std::vector<PathfinderRecord> records = read_pathfinder_metadata(folder);
  const std::string splits_path = folder + "/" + kSplitsFile;
  const Membership members =
      is_there(splits_path)
          ? read_membership(splits_path, records)
          : draw_membership(tenths(static_cast<int64_t>(records.size())), config_.split_seed);
  Manifest manifest = new_manifest("imported");
  manifest.settings["format"] = level_folder();
  DatasetWriter writer(out, std::move(manifest),
                       static_cast<int64_t>(records.size()) * (num_pixels() + 90));
  Hasher hasher;
  std::string lines;
  for (size_t split = 0; split < 3; ++split) {
    writer.begin_split(kPathfinderSplits[split]);
    const std::vector<int64_t>& images = members[split];
    for (size_t begin = 0; begin < images.size(); begin += kBlock) {
      throw_if_stopped();
      std::vector<PathfinderPixels> block(std::min<size_t>(kBlock, images.size() - begin));
      const auto record = [&](size_t i) -> const PathfinderRecord& {
        return records[static_cast<size_t>(images[begin + i])];
      };
      parallel_for_each(static_cast<int64_t>(block.size()), [&](int64_t i) {
        const auto at = static_cast<size_t>(i);
        block[at] = read_pathfinder_image(folder + "/" + record(at).path, settings_.size);
      });
      for (size_t i = 0; i < block.size(); ++i) {
        hasher.append(record(i).line + " " + to_hex(block[i].hash) + "\n");
        if (!block[i].problem.empty()) {
          writer.add_note("skipped: " + block[i].problem);
          continue;
        }
        writer.add(record(i).label, block[i].pixels);
        lines += record(i).line + "\n";
      }
      progress.update(static_cast<int64_t>(block.size()));
    }
  }
  writer.set_source_hash(to_hex(hasher.digest()));
  writer.add_side_file(kLinesFile, lines);
  writer.finish();
}

std::vector<std::string> PathfinderTask::find_sources(const std::string& root) const {
  // The archive holds Path-X twice; the inner folder is the one that can be learned.
  for (const char* above : {"lra_release/lra_release", "lra_release", ".", "pathfinder"}) {
    const fs::path folder = fs::path(root) / above / task_name(settings_.size);
    if (is_folder(folder / level_folder())) return {folder.lexically_normal().string()};
  }
  return {};
}

// The metadata of all examples in the order train, val, test; checked against the labels.
std::vector<PathfinderRecord> PathfinderTask::records_of(const Dataset& dataset) const {
  const std::string content = dataset.read_side_file(kLinesFile);
  const std::string name = dataset.folder() + "/" + kLinesFile;
  std::vector<PathfinderRecord> records =
      parse_pathfinder_metadata(std::as_bytes(std::span(content)), name);
  size_t next = 0;
  bool agrees = true;
  for (const char* split_name : kPathfinderSplits) {
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

void PathfinderTask::export_official(const Dataset& dataset, const std::string& out) const {
  const std::string folder = out + "/" + task_name(settings_.size) + "/" + level_folder();
  if (is_there(folder)) {
    throw Error({.where = folder, .what = "exists already", .expected = "", .advice = "remove it"});
  }
  const std::vector<PathfinderRecord> records = records_of(dataset);
  std::map<int64_t, std::map<int64_t, std::string>> batches;  // batch, index -> line
  std::string splits_text;
  size_t next = 0;
  for (const char* name : kPathfinderSplits) {
    const Split split = dataset.split(name);
    const size_t first = next;
    for (int64_t i = 0; i < split.size(); ++i, ++next) {
      const fs::path path(records[next].path);
      if (i == 0 || !is_folder(folder + "/" + path.parent_path().string())) {
        make_folder(folder + "/" + path.parent_path().string());
      }
      splits_text += records[next].path + " " + name + "\n";
    }
    parallel_for_each(split.size(), [&](int64_t i) {
      throw_if_stopped();
      const std::span<const uint8_t> pixels = split.stored_bytes(i);
      const std::string path = folder + "/" + records[first + static_cast<size_t>(i)].path;
      if (static_cast<int64_t>(pixels.size()) != num_pixels()) {
        throw Error({.where = std::string(name) + " example " + std::to_string(i),
                     .what = "has " + std::to_string(pixels.size()) + " pixels",
                     .expected = std::to_string(num_pixels()),
                     .advice = "run lra data check"});
      }
      write_file_atomically(path, encode_png({.width = settings_.size,
                                              .height = settings_.size,
                                              .pixels = {pixels.begin(), pixels.end()}}));
    });
  }
  make_folder(folder + "/metadata");
  // Batches by the number of their folder, lines by the number of the image.
  for (const PathfinderRecord& record : records) {
    const fs::path path(record.path);
    const auto number = [&](const std::string& text) {
      const size_t digit = text.find_first_of("0123456789");
      return digit == std::string::npos ? 0 : std::stoll(text.substr(digit, 15));
    };
    batches[number(path.parent_path().filename().string())][number(path.stem().string())] =
        record.line;
  }
  for (const auto& [batch, lines] : batches) {
    std::string text;
    for (const auto& [index, line] : lines) text += line + "\n";
    write_file_atomically(folder + "/metadata/" + std::to_string(batch) + ".npy", text);
  }
  write_file_atomically(folder + "/" + kSplitsFile, splits_text);
}

std::vector<Fact> PathfinderTask::check(const Dataset& dataset) const {
  std::map<std::string, int64_t> expected;
  const std::array<int64_t, 3> counts = tenths(config_.num_images);
  const auto& settings = dataset.manifest().settings;
  for (size_t i = 0; i < 3; ++i) {
    const auto own = settings.find(std::string("num_") + kPathfinderSplits[i]);
    const bool is_number = own != settings.end() && !own->second.empty() &&
                           own->second.size() <= 9 &&
                           own->second.find_first_not_of("0123456789") == std::string::npos;
    expected[kPathfinderSplits[i]] = is_number ? std::stoll(own->second) : counts[i];
  }
  std::vector<Fact> facts;
  add_size_facts(dataset, expected, facts);
  add_label_facts(dataset, kNumClasses, facts);
  add_length_facts(dataset, {.least = num_pixels(), .most = num_pixels(), .bin = num_pixels()},
                   facts);
  add_duplicate_facts(dataset, dataset.manifest().source == "generated", facts);
  facts.push_back({.name = "images skipped",
                   .value = std::to_string(dataset.manifest().notes.size()),
                   .ok = true,
                   .detail = dataset.manifest().notes.empty() ? "" : dataset.manifest().notes[0]});
  return facts;
}

std::string PathfinderTask::render(const Split& split, int64_t example) const {
  const std::span<const uint8_t> pixels = split.stored_bytes(example);
  const int32_t label = split.label(example);
  std::string text = std::to_string(label) + (label == 1 ? " (joined), " : " (not joined), ") +
                     std::to_string(settings_.size) + " x " + std::to_string(settings_.size) +
                     " pixels\n";
  if (static_cast<int64_t>(pixels.size()) != num_pixels()) return text;
  // At most 64 columns; a cell of the terminal shows two pixels, one above the other.
  const int shrink = std::max(1, settings_.size / 64), side = settings_.size / shrink;
  const auto is_lit = [&](int y, int x) {
    for (int dy = 0; dy < shrink; ++dy) {
      for (int dx = 0; dx < shrink; ++dx) {
        const int at = (y * shrink + dy) * settings_.size + x * shrink + dx;
        if (pixels[static_cast<size_t>(at)] >= 96) return true;
      }
    }
    return false;
  };
  for (int y = 0; y < side; y += 2) {
    std::string line;
    for (int x = 0; x < side; ++x) {
      const bool above = is_lit(y, x), below = is_lit(y + 1, x);
      line += above ? (below ? "█" : "▀") : (below ? "▄" : " ");
    }
    text += line + "\n";
  }
  return text;
}

std::vector<Baseline> PathfinderTask::baselines(const Dataset& dataset) const {
  const Split train = dataset.split("train"), test = dataset.split("test");
  return {majority_baseline(train, test, kNumClasses), brightness_baseline(train, test)};
}

template <int kSize>
std::unique_ptr<Task> make_task(const ConfigTable& config) {
  return std::make_unique<PathfinderTask>(kSize, read_config<PathfinderConfig>(config, "task"));
}

}  // namespace

constinit const TaskSpec kPathfinder32Task = {
    .name = "pathfinder32",
    .title = "Pathfinder",
    .summary = "are two marked points of a 32 x 32 image joined by a dashed path? 2 classes",
    .paper = "Tay et al. 2021; Linsley et al. 2018",
    .version = kVersion,
    .describe = describe_config<PathfinderConfig>,
    .make = make_task<32>,
};

constinit const TaskSpec kPathfinder64Task = {
    .name = "pathfinder64",
    .title = "Pathfinder 64",
    .summary = "Pathfinder at 64 x 64, in the release but not in the paper; 2 classes",
    .paper = "released with Tay et al. 2021; Linsley et al. 2018",
    .version = kVersion,
    .describe = describe_config<PathfinderConfig>,
    .make = make_task<64>,
};

constinit const TaskSpec kPathfinder128Task = {
    .name = "pathfinder128",
    .title = "Path-X (Pathfinder 128)",
    .summary = "Pathfinder at 128 x 128: 16384 tokens; 2 classes",
    .paper = "Tay et al. 2021; Linsley et al. 2018",
    .version = kVersion,
    .describe = describe_config<PathfinderConfig>,
    .make = make_task<128>,
};

constinit const TaskSpec kPathfinder256Task = {
    .name = "pathfinder256",
    .title = "Pathfinder 256",
    .summary = "Pathfinder at 256 x 256, in the release but not in the paper; 2 classes",
    .paper = "released with Tay et al. 2021; Linsley et al. 2018",
    .version = kVersion,
    .describe = describe_config<PathfinderConfig>,
    .make = make_task<256>,
};

}  // namespace lra::tasks
