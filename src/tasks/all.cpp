#include "tasks/all.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/error.h"
#include "base/parallel.h"

namespace lra::tasks {
namespace {

#define LRA_SPEC_OF(NAME) &k##NAME##Task,
constinit const std::array kAllTasks = {LRA_ALL_TASKS(LRA_SPEC_OF)};
#undef LRA_SPEC_OF

// The archive calls two tasks otherwise than the paper does, and people call some by their data.
constexpr std::pair<std::string_view, const TaskSpec*> kOtherNames[] = {
    {"pathfinder32", &kPathfinderTask},
    {"pathfinder128", &kPathXTask},
    {"path-x", &kPathXTask},
    {"imdb", &kTextTask},
    {"aan", &kRetrievalTask},
    {"cifar10", &kImageTask},
    {"cifar-10", &kImageTask},
    {"cifar", &kImageTask}};

std::string_view paper_name(std::string_view name) {
  for (const auto& [other, task] : kOtherNames) {
    if (name == other) return task->name;
  }
  return name;
}

// The largest stored value. Vectors of bytes: verifying must not be slower than reading the disk.
int32_t largest_byte(std::span<const uint8_t> values) {
  uint8_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (size_t i = 0; i < values.size(); ++i) largest = std::max(largest, values[i]);
  return largest;
}

// The largest id of a sequence; 0 of an empty one. A stored id above those of int32 is negative as
// one, and larger than any that a model has.
int32_t largest_token(const Split& split, int64_t example, int64_t tower,
                      const Manifest& manifest) {
  if (manifest.token_bytes == 1) {
    const std::span<const uint8_t> stored = split.stored_bytes(example, tower);
    if (stored.empty()) return 0;
    return largest_byte(stored) + static_cast<int32_t>(manifest.token_offset);
  }
  uint32_t largest = 0;
  for (const int32_t id : split.all_tokens(example, tower))
    largest = std::max(largest, static_cast<uint32_t>(id));
  return static_cast<int32_t>(std::min<uint32_t>(largest, INT32_MAX));
}

// Largest id and label of a split. Ids are not computed for numbers, which are not ids.
struct Largest {
  int32_t token = 0, label = 0;
};

Largest largest_in(const Split& split, const Manifest& manifest, bool has_ids) {
  Largest all;
  std::mutex guards_all;
  parallel_ranges(split.size(), 256, [&](int64_t begin, int64_t end) {
    Largest largest;
    for (int64_t i = begin; i < end; ++i) {
      largest.label = std::max(largest.label, split.label(i));
      for (int64_t tower = 0; has_ids && tower < manifest.num_towers; ++tower) {
        largest.token = std::max(largest.token, largest_token(split, i, tower, manifest));
      }
    }
    const std::lock_guard lock(guards_all);
    all.token = std::max(all.token, largest.token);
    all.label = std::max(all.label, largest.label);
  });
  return all;
}

}  // namespace

std::span<const TaskSpec* const> all_tasks() { return kAllTasks; }

std::string_view data_name_of(std::string_view task) {
  const size_t colon = task.find(':');
  return colon == std::string_view::npos ? "" : task.substr(colon + 1);
}

const TaskSpec& find_task(std::string_view name) {
  std::vector<std::string> known;
  const std::string_view data = data_name_of(name);
  if (is_plain_file_name(data) && name == std::string(kCustomTask.name) + ":" + std::string(data)) {
    return kCustomTask;
  }
  for (const TaskSpec* spec : kAllTasks) {
    if (spec->name == name) return *spec;
    known.emplace_back(spec->name);
  }
  throw Error({.what = "unknown task '" + std::string(name) + "'",
               .advice = suggestion(paper_name(name), known)});
}

Dataset open_dataset(const TaskSpec& spec, const Task& task, const std::string& folder,
                     bool verify) {
  Dataset dataset = Dataset::open(folder, verify);
  const Manifest& manifest = dataset.manifest();
  const TaskShape shape = task.shape();
  const auto refuse = [&](const std::string& what, const std::string& expected,
                          const std::string& advice = "prepare the data of this task again") {
    throw Error({.where = folder, .what = what, .expected = expected, .advice = advice});
  };
  const auto compare = [&](const char* what, int64_t found, int64_t expected) {
    if (found != expected) {
      refuse(std::string(what) + " is " + std::to_string(found), std::to_string(expected));
    }
  };
  if (manifest.task != spec.name) {
    refuse("holds data of task '" + manifest.task + "'", "'" + std::string(spec.name) + "'",
           "name the folder with the data of " + std::string(spec.name));
  }
  compare("task version", manifest.task_version, spec.version);
  task.refuse_other_kind(dataset);
  compare("number of sequences per example", manifest.num_towers, shape.num_towers);
  compare("bytes per token", manifest.token_bytes, task.token_bytes());
  for (const auto& [name, unused] : manifest.splits) {
    if (shape.has_padding) break;  // readers of images count on their number of pixels
    const Split split = dataset.split(name);
    for (int64_t i = 0; i < split.size() * shape.num_towers; ++i) {
      const int64_t example = i / shape.num_towers;
      const int64_t found = split.sequence_length(example, i % shape.num_towers);
      if (found == shape.length) continue;
      refuse("split " + name + " example " + std::to_string(example) + " has " +
                 std::to_string(found) + " tokens",
             std::to_string(shape.length));
    }
  }
  if (!verify) return dataset;
  const bool has_ids = !shape.values || !shape.values->stored_as_float;
  for (const auto& [name, unused] : manifest.splits) {
    const Largest largest = largest_in(dataset.split(name), manifest, has_ids);
    if (has_ids && largest.token >= shape.vocabulary) {
      refuse("split " + name + " has token " + std::to_string(largest.token),
             "less than " + std::to_string(shape.vocabulary));
    }
    if (largest.label >= shape.num_classes) {
      refuse("split " + name + " has label " + std::to_string(largest.label),
             "less than " + std::to_string(shape.num_classes));
    }
  }
  return dataset;
}

}  // namespace lra::tasks
