// Pathfinder and Path-X (Linsley et al., NeurIPS 2018; Tay et al., ICLR 2021, section 2.2.5): are
// the two marked points joined by a dashed path? Pixels are tokens, row by row; none is padding.
//
// The authors never published which images form their splits. Here image i of the official order
// goes to train, val or test by a permutation keyed by split_seed: 80, 10 and 10 percent. An
// export also writes the membership as splits.txt, which an import follows.
#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "base/revision.h"
#include "base/text_format.h"
#include "checks/baseline.h"
#include "checks/facts.h"
#include "data/drawn_examples.h"
#include "data/files.h"
#include "tasks/all.h"
#include "tasks/pathfinder/check.h"
#include "tasks/pathfinder/export.h"
#include "tasks/pathfinder/files.h"
#include "tasks/pathfinder/generator.h"
#include "tasks/pathfinder/markers.h"
#include "tasks/pathfinder/split.h"
#include "tasks/pathfinder/writer.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPathfinderClasses = 2;
constexpr ValueInput kBlackToWhite{.zero = 127.5, .scale = 1 / 127.5};
constexpr int64_t kExtraBytes = 90;  // label, offset and metadata line of an example
constexpr const char* kSplitHash = "split_xxh3";

constexpr int64_t kMostImages = 15000000;  // their lines must fit into one file of 1 GiB

struct PathfinderConfig {
  std::string difficulty = "hard";
  int64_t num_images = 200000;
  int64_t split_seed = kUsualSplitSeed;
  std::string input = "tokens";

  void fields(auto& f) {
    f("difficulty", difficulty, "dashes per target contour: 6, 9 or 14",
      one_of({"easy", "intermediate", "hard"}));
    f("num_images", num_images, "images to generate; lra data check expects as many",
      between(10, kMostImages));
    f("split_seed", split_seed, "seed of the choice of held-out images", at_least(0));
    f("input", input, "tokens: an embedding per gray value; values: from -1 (black) to 1",
      one_of({"tokens", "values"}));
  }
};

const TaskSpec& spec_of(int size) {
  return size == 32    ? kPathfinderTask
         : size == 64  ? kPathfinder64Task
         : size == 128 ? kPathXTask
                       : kPathfinder256Task;
}

// Name of the folder in the archive.
std::string archive_folder(int size) { return "pathfinder" + std::to_string(size); }

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
            .num_classes = kPathfinderClasses,
            .num_towers = 1,
            .has_padding = false,
            .values = config_.input == "values" ? std::optional(kBlackToWhite) : std::nullopt};
  }
  void refuse_other_settings(const Dataset& dataset) const override;
  bool can_generate() const override { return true; }
  std::array<int64_t, 3> usual_sizes() const override { return tenths(config_.num_images); }
  void make(const MakeOptions& options, Progress& progress) const override;
  ImportedData import(const std::vector<std::string>& sources, const std::string& out,
                      Progress& progress) const override;
  std::vector<std::string> find_sources(const std::string& root) const override;
  void export_official(const Dataset& dataset, const std::string& out) const override {
    refuse_other_difficulty(dataset);  // the folder's name says it
    export_pathfinder(dataset, settings_.size,
                      out + "/" + archive_folder(settings_.size) + "/" + level_folder());
  }
  checks::InputKind input() const override { return checks::InputKind::kPixels; }
  checks::ExpectedData expected(const Dataset& dataset) const override;
  std::string other_benchmark(const Dataset& dataset) const override;
  std::vector<checks::Fact> check(const Dataset& dataset) const override;
  std::string render(const Split& split, int64_t example) const override;
  std::vector<ExampleProperty> example_properties(const Dataset& dataset,
                                                  const std::string& name) const override {
    const auto size = static_cast<size_t>(dataset.split(name).size());
    return {{"contour length", {size, std::to_string(settings_.contour_length())}}};
  }
  std::vector<checks::Baseline> baselines(const Dataset& dataset) const override;

 private:
  int64_t num_pixels() const { return int64_t{settings_.size} * settings_.size; }
  std::string level_folder() const {
    return std::string(kDifficultyFolders[static_cast<size_t>(settings_.difficulty)]);
  }
  std::map<std::string, std::string> own_settings() const {
    return {{"difficulty", config_.difficulty}, {"split_seed", std::to_string(config_.split_seed)}};
  }
  std::string source_folder(const std::vector<std::string>& sources) const;
  std::string difficulty_advice(const std::string& folder) const;
  void refuse_other_difficulty(const Dataset& dataset) const;
  void refuse_other_contours(const std::vector<PathfinderRecord>& records,
                             const std::string& folder) const;
  void refuse_other_split(const Dataset& dataset) const;

  PathfinderConfig config_;
  PathfinderSettings settings_;
};

// Refuses data of another difficulty: its figures would be indistinguishable from those of this
// one.
void PathfinderTask::refuse_other_difficulty(const Dataset& dataset) const {
  const auto& settings = dataset.manifest().settings;
  const auto found = settings.find("difficulty");
  if (found == settings.end() || found->second == config_.difficulty) return;
  throw Error({.where = dataset.folder(),
               .what = "holds images of difficulty '" + found->second + "'",
               .expected = "'" + config_.difficulty + "'",
               .advice = "set task.difficulty, or name another data folder"});
}

void PathfinderTask::refuse_other_split(const Dataset& dataset) const {
  const auto seed = number_setting(dataset.manifest(), "split_seed");
  if (seed.value_or(kUsualSplitSeed) == config_.split_seed) return;
  throw Error({.where = dataset.folder(),
               .what = seed ? "was split with seed " + std::to_string(*seed)
                            : std::string("has a split of its own"),
               .expected = "seed " + std::to_string(config_.split_seed),
               .advice = "set task.split_seed, or name another data folder"});
}

void PathfinderTask::refuse_other_settings(const Dataset& dataset) const {
  refuse_other_difficulty(dataset);
  refuse_other_split(dataset);
}

void PathfinderTask::make(const MakeOptions& options, Progress& progress) const {
  const std::array<int64_t, 3> counts = sizes(options);
  for (const int64_t count : {counts[0], counts[1], counts[2], num_to_make(options)}) {
    if (count >= 0 && count <= kMostImages) continue;
    throw Error({.where = "lra data make",
                 .what = std::to_string(count) + " images",
                 .expected = "0 to " + thousands(kMostImages) + " in all splits together"});
  }
  Manifest manifest =
      generated_manifest(spec_of(settings_.size), own_settings(), options.seed, counts);
  manifest.source_hash = hash_of_settings(manifest.settings, manifest.task + "\n");
  // First, so that a disk without room is found before hundreds of millions of places are drawn.
  DatasetWriter writer(options.out, std::move(manifest),
                       num_to_make(options) * (num_pixels() + kExtraBytes), program_revision());
  const Membership members = draw_membership(counts, config_.split_seed);
  writer.manifest().settings[kSplitHash] = hash_of(members);
  const PathfinderGenerator generator(settings_, options.seed);
  const auto draw = [&](int64_t index) {
    PathfinderImage image = generator.draw(index);
    return NewExample{.label = image.label,
                      .pixels = std::move(image.pixels),
                      .line = pathfinder_line(settings_, index, image.label, image.margin),
                      .source = "",
                      .problem = ""};
  };
  write_splits(members, draw, writer, progress);
  writer.finish();
}

// Hash of the rows, and of the size and time of every image: an import resumes only with the files
// that it began with.
std::string hash_of_files(const std::string& folder, const std::vector<PathfinderRecord>& records) {
  Hasher hasher;
  for (const PathfinderRecord& record : records) {
    const fs::path path = fs::path(folder) / record.path;
    std::error_code missing;
    const auto size = fs::file_size(path, missing);
    const auto time = fs::last_write_time(path, missing).time_since_epoch().count();
    hasher.append(record.line + " " + std::to_string(size) + " " + std::to_string(time) + "\n");
  }
  return to_hex(hasher.digest());
}

// The folder with imgs and metadata: given itself, or by a folder above it.
std::string PathfinderTask::source_folder(const std::vector<std::string>& sources) const {
  if (sources.size() != 1) {
    throw Error({.where = "lra data import " + std::string(spec_of(settings_.size).name),
                 .what = std::to_string(sources.size()) + " sources",
                 .expected = "one: the folder that holds " + level_folder()});
  }
  if (is_file(sources[0])) {
    throw Error({.where = sources[0],
                 .what = "is a file",
                 .expected = "the folder that holds " + level_folder(),
                 .advice = "unpack it first"});
  }
  const std::vector<std::string> found = find_sources(sources[0]);
  if (!found.empty()) return found[0];
  throw Error(
      {.where = sources[0],
       .what = "holds no Pathfinder images; it holds " + quoted_list(data_names_in(sources[0])),
       .expected = "imgs and metadata, or a folder " + level_folder() + " with them",
       .advice = difficulty_advice(sources[0])});
}

// Advice for a folder with images of another difficulty.
std::string PathfinderTask::difficulty_advice(const std::string& folder) const {
  for (size_t i = 0; i < kDifficulties.size(); ++i) {
    if (!is_folder(folder + "/" + std::string(kDifficultyFolders[i]))) continue;
    return "set task.difficulty=" + std::string(kDifficulties[i]) + " to use " +
           std::string(kDifficultyFolders[i]);
  }
  return "";
}

// The sixth field of a record: how many dashes a contour has.
void PathfinderTask::refuse_other_contours(const std::vector<PathfinderRecord>& records,
                                           const std::string& folder) const {
  constexpr int kField = 5;
  const std::string wanted = std::to_string(settings_.contour_length());
  for (const PathfinderRecord& record : records) {
    std::istringstream fields(record.line);
    std::string field;
    for (int n = 0; n <= kField; ++n) fields >> field;
    if (field == wanted || field == wanted + ".0") continue;
    throw Error({.where = folder,
                 .what = record.path + " has contours of " + printable(field) + " dashes",
                 .expected = wanted + ", which is difficulty '" + config_.difficulty + "'",
                 .advice = "set task.difficulty"});
  }
}

ImportedData PathfinderTask::import(const std::vector<std::string>& sources, const std::string& out,
                                    Progress& progress) const {
  const std::string folder = source_folder(sources);
  const std::vector<PathfinderRecord> records = read_pathfinder_metadata(folder);
  refuse_other_contours(records, folder);
  const auto num_records = static_cast<int64_t>(records.size());
  Manifest manifest = new_manifest(spec_of(settings_.size), "imported");
  manifest.settings = own_settings();
  manifest.settings["format"] = level_folder();
  const Membership members = membership_of_source(folder, records, config_.split_seed, manifest);
  const std::string split_hash = hash_of(members);
  DatasetWriter writer(out, std::move(manifest), num_records * (num_pixels() + kExtraBytes),
                       split_hash + hash_of_files(folder, records) + program_revision());
  writer.manifest().settings[kSplitHash] = split_hash;
  const auto read = [&](int64_t index) {
    const PathfinderRecord& record = records[static_cast<size_t>(index)];
    PathfinderPixels image = read_pathfinder_image(folder + "/" + record.path, settings_.size);
    return NewExample{.label = record.label,
                      .pixels = std::move(image.pixels),
                      .line = record.line,
                      .source = record.line + " " + to_hex(image.hash) + "\n",
                      .problem = std::move(image.problem)};
  };
  writer.manifest().source_hash = write_splits(members, read, writer, progress);
  if (const int64_t others = count_pathfinder_images(folder) - num_records; others > 0) {
    writer.manifest().notes.push_back(thousands(others) + " images in " + folder +
                                      "/imgs are in none of its metadata, and were left out");
  }
  return completed(std::move(writer));
}

checks::ExpectedData PathfinderTask::expected(const Dataset& dataset) const {
  const Manifest& manifest = dataset.manifest();
  return {.sizes = expected_pathfinder_sizes(manifest, config_.num_images),
          .published = expected_pathfinder_sizes(manifest, PathfinderConfig{}.num_images),
          .shortest = num_pixels(),
          .longest = num_pixels(),
          .bin = num_pixels(),
          .forbids_duplicates = manifest.source == "generated"};
}

// The archive's outer pathfinder128 has the size of the published data, and labels that have
// nothing to do with its images.
std::string PathfinderTask::other_benchmark(const Dataset& dataset) const {
  constexpr int64_t kImagesForLabels = 20000;
  const Split train = dataset.split("train");
  const checks::Fact labels = marker_distance_fact(
      train.subset(drawn_examples(train.size(), kImagesForLabels)), settings_.size);
  return labels.ok ? "" : labels.detail;
}

std::vector<std::string> PathfinderTask::find_sources(const std::string& root) const {
  std::string other_levels;  // the first folder of this size without this difficulty
  // The archive holds Path-X twice; the inner folder is the one that can be learned.
  for (const char* above : {"lra_release/lra_release", "lra_release", "."}) {
    const std::string folder =
        (fs::path(root) / above / archive_folder(settings_.size)).lexically_normal().string();
    if (is_folder(folder + "/" + level_folder())) return {folder + "/" + level_folder()};
    if (other_levels.empty() && !data_names_in(folder).empty()) other_levels = folder;
  }
  if (is_folder(root + "/" + level_folder())) return {root + "/" + level_folder()};
  if (is_folder(root + "/imgs") || is_folder(root + "/metadata")) return {root};
  if (other_levels.empty()) return {};
  throw Error(
      {.where = other_levels,
       .what =
           "has no " + level_folder() + "; it holds " + quoted_list(data_names_in(other_levels)),
       .expected = level_folder() + ", the images of difficulty '" + config_.difficulty + "'",
       .advice = difficulty_advice(other_levels)});
}

std::vector<checks::Fact> PathfinderTask::check(const Dataset& dataset) const {
  refuse_other_difficulty(dataset);
  std::vector<checks::Fact> facts = Task::check(dataset);
  facts.push_back(skipped_images_fact(dataset.manifest()));
  facts.push_back({.name = "metadata lines",
                   .value = thousands(static_cast<int64_t>(pathfinder_records(dataset).size())),
                   .ok = true,
                   .detail = "each with the label of its example"});
  facts.push_back(marker_distance_fact(dataset.split("train"), settings_.size));
  if (dataset.manifest().source != "generated") return facts;
  facts.push_back(redrawn_images_fact(dataset, settings_));
  return facts;
}

std::string PathfinderTask::render(const Split& split, int64_t example) const {
  const std::span<const uint8_t> pixels = split.stored_bytes(example);
  const int32_t label = split.label(example);
  std::string text = std::to_string(label) + (label == 1 ? " (joined), " : " (not joined), ") +
                     std::to_string(settings_.size) + " x " + std::to_string(settings_.size) +
                     " pixels\n";
  if (static_cast<int64_t>(pixels.size()) != num_pixels()) return text;
  return text + pathfinder_picture(pixels, settings_.size);
}

std::vector<checks::Baseline> PathfinderTask::baselines(const Dataset& dataset) const {
  const Split train = dataset.split("train"), test = dataset.split("test");
  return {checks::majority_baseline(train, test, kPathfinderClasses),
          checks::brightness_baseline(train, test),
          marker_distance_baseline(train, test, settings_.size),
          checks::place_baseline(train, test, kPathfinderClasses)};
}

constexpr const char* kSources =
    "a folder with imgs and metadata, or one above it: curv_contour_length_14 (of easier images, "
    "curv_contour_length_9 and curv_baseline, with task.difficulty), pathfinder32 and the like, or "
    "lra_release; the archive has to be unpacked";

constexpr RemoteData kRemote32 = lra_release("lra_release/lra_release/pathfinder32");
constexpr RemoteData kRemote64 = lra_release("lra_release/lra_release/pathfinder64");
constexpr RemoteData kRemote128 = lra_release("lra_release/lra_release/pathfinder128");
constexpr RemoteData kRemote256 = lra_release("lra_release/lra_release/pathfinder256");
constexpr std::string_view kOfPaper = "Tay et al. 2021; Linsley et al. 2018",
                           kOfRelease = "released with Tay et al. 2021; Linsley et al. 2018";

template <int kSize>
constexpr TaskSpec pathfinder_spec(std::string_view name, std::string_view title,
                                   std::string_view summary, std::string_view paper,
                                   const RemoteData* remote) {
  return task_spec<PathfinderTask, PathfinderConfig, kSize>({.name = name,
                                                             .title = title,
                                                             .summary = summary,
                                                             .paper = paper,
                                                             .version = 1,
                                                             .sources = kSources,
                                                             .remote = remote,
                                                             .mask_fraction = 0.5});
}

}  // namespace

constinit const TaskSpec kPathfinderTask = pathfinder_spec<32>(
    "pathfinder", "Pathfinder",
    "are two marked points of a 32 x 32 image joined by a dashed path? 2 classes", kOfPaper,
    &kRemote32);
constinit const TaskSpec kPathfinder64Task =
    pathfinder_spec<64>("pathfinder64", "Pathfinder 64",
                        "Pathfinder at 64 x 64, in the release but not in the paper; 2 classes",
                        kOfRelease, &kRemote64);
constinit const TaskSpec kPathXTask =
    pathfinder_spec<128>("pathx", "Path-X (Pathfinder at 128 x 128)",
                         "Pathfinder at 128 x 128: 16384 tokens; 2 classes", kOfPaper, &kRemote128);
constinit const TaskSpec kPathfinder256Task =
    pathfinder_spec<256>("pathfinder256", "Pathfinder 256",
                         "Pathfinder at 256 x 256, in the release but not in the paper; 2 classes",
                         kOfRelease, &kRemote256);

}  // namespace lra::tasks
