#include "tasks/pathfinder/writer.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/parallel.h"
#include "data/stopping.h"
#include "io/progress.h"
#include "io/struct_json.h"
#include "tasks/pathfinder/check.h"
#include "tasks/pathfinder/export.h"

namespace lra::tasks {
namespace {

constexpr int64_t kBlock = 256;  // images in memory at a time: 16 MB at 256 x 256

// Output of the images since the last whole shard, besides pixels.
struct Gathered {
  int64_t num_images = 0;
  std::string lines, sources;
  std::vector<std::string> notes;

  void add(const NewExample& example, const std::string& split) {
    ++num_images;
    sources += example.source;
    if (example.problem.empty()) {
      lines += example.line + "\n";
    } else {
      notes.push_back(kPathfinderSkipped + split + ": " + example.problem);
    }
  }
};

LRA_FIELDS(Gathered, num_images, lines, sources, notes)

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

// Writes the splits and the metadata lines, going on where an interrupted run stopped.
class SplitsWriter {
 public:
  SplitsWriter(DatasetWriter& writer, Progress& progress) : writer_(writer), progress_(progress) {}

  // `produce` is called on any thread.
  void write(const std::string& split, const std::vector<int64_t>& images,
             const std::function<NewExample(int64_t)>& produce) {
    writer_.begin_split(split);
    for (size_t begin = taken_over(); begin < images.size(); begin += kBlock) {
      throw_if_stopped();
      std::vector<NewExample> block(std::min<size_t>(kBlock, images.size() - begin));
      parallel_for_each(static_cast<int64_t>(block.size()), [&](int64_t i) {
        block[static_cast<size_t>(i)] = produce(images[begin + static_cast<size_t>(i)]);
      });
      for (const NewExample& example : block) add(example, split);
      progress_.update(static_cast<int64_t>(block.size()));
    }
    keep(std::exchange(gathered_, {}));
  }

  // Returns the hash of all sources.
  std::string finish() {
    writer_.add_side_file(kPathfinderLinesFile, lines_);
    return to_hex(hasher_.digest());
  }

 private:
  void keep(const Gathered& gathered) {
    hasher_.append(gathered.sources);
    lines_ += gathered.lines;
    for (const std::string& note : gathered.notes) writer_.manifest().notes.push_back(note);
  }

  // Number of images of this split that need not be produced again.
  size_t taken_over() {
    size_t num_images = 0;
    for (const std::string& state : writer_.take_over()) {
      const Json json = parse_json(state, "state of a shard");
      Gathered gathered;
      struct_from_json(JsonFields(json, "state of a shard"), gathered);
      keep(gathered);
      num_images += static_cast<size_t>(gathered.num_images);
    }
    progress_.update(static_cast<int64_t>(num_images));
    return num_images;
  }

  void add(const NewExample& example, const std::string& split) {
    gathered_.add(example, split);
    if (!example.problem.empty() || !writer_.add(example.label, example.pixels)) return;
    // A state is UTF-8; rows of other bytes can be imported, but start over.
    if (!is_ascii(gathered_.lines + gathered_.sources)) return;
    writer_.mark(json_text(to_json_value(gathered_)));
    keep(std::exchange(gathered_, {}));
  }

  DatasetWriter& writer_;
  Progress& progress_;
  Hasher hasher_;
  std::string lines_;
  Gathered gathered_;
};

}  // namespace

std::string write_splits(const Membership& members,
                         const std::function<NewExample(int64_t)>& produce, DatasetWriter& writer,
                         Progress& progress) {
  SplitsWriter splits(writer, progress);
  for (size_t i = 0; i < 3; ++i) splits.write(kSplitNames[i], members[i], produce);
  return splits.finish();
}

}  // namespace lra::tasks
