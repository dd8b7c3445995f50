// Byte-level text classification (Tay et al., ICLR 2021, section 2.2.2): IMDb reviews as raw UTF-8
// bytes, without any cleaning; id = byte + 1, 0 is padding.
//
// Examples are in the order train, test; neg, pos; number of the review. The authors validate on
// the test set; `validation = "heldout"` keeps a seeded tenth of train for it instead.
#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/text_format.h"
#include "base/utf8.h"
#include "checks/baseline.h"
#include "checks/facts.h"
#include "data/drawn_examples.h"
#include "data/files.h"
#include "data/new_folder.h"
#include "data/stopping.h"
#include "data/text_lines.h"
#include "io/atomic_file.h"
#include "io/progress.h"
#include "tasks/all.h"
#include "tasks/text/review_tables.h"
#include "tasks/text/reviews.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTextClasses = 2;
// Names of the reviews, one per line, train before test, which the tokens do not contain.
constexpr const char* kNamesFile = "reviews.txt";

struct TextConfig {
  int64_t length = 1000;
  std::string validation = "test";
  int64_t validation_seed = 0;
  int64_t num_train = 25000;
  int64_t num_test = 25000;

  void fields(auto& f) {
    f("length", length, "bytes per review; longer reviews are cut", between(1, 16384));
    f("validation", validation,
      "validate on the test set, as the authors do, or on a held-out tenth of train",
      one_of({"test", "heldout"}));
    f("validation_seed", validation_seed, "seed of the choice of the held-out tenth", at_least(0));
    f("num_train", num_train, "reviews that lra data check expects for training", at_least(0));
    f("num_test", num_test, "reviews that lra data check expects for the test", at_least(0));
  }
};

// Hash of the 50,000 labeled reviews, from every layout that import() reads.
constexpr std::string_view kTextExamples = "684ae817b0c486a6c3514479f6328db0";

class TextTask : public Task {
 public:
  explicit TextTask(TextConfig config) : config_(std::move(config)) {}

  TaskShape shape() const override {
    return {.length = config_.length, .vocabulary = 257, .num_classes = kTextClasses};
  }
  std::string validation() const override { return config_.validation; }
  Split split(const Dataset& dataset, const std::string& name) const override;
  ImportedData import(const std::vector<std::string>& sources, const std::string& out,
                      Progress& progress) const override;
  std::vector<std::string> find_sources(const std::string& root) const override;
  void export_official(const Dataset& dataset, const std::string& out) const override;
  checks::InputKind input() const override { return checks::InputKind::kText; }
  checks::ExpectedData expected(const Dataset& dataset) const override;
  std::vector<checks::Fact> check(const Dataset& dataset) const override;
  std::string render(const Split& split, int64_t example) const override;
  std::vector<ExampleProperty> example_properties(const Dataset& dataset,
                                                  const std::string& name) const override;
  std::string token_text(int32_t token) const override { return byte_token_text(token); }
  std::vector<checks::Baseline> baselines(const Dataset& dataset) const override;

 private:
  TextConfig config_;
};

Split TextTask::split(const Dataset& dataset, const std::string& name) const {
  if (config_.validation == "test") return dataset.split(name == "val" ? "test" : name);
  if (name != "train" && name != "val") return dataset.split(name);
  const Split train = dataset.split("train");
  const std::vector<bool> held_out =
      held_out_tenth(train.size(), static_cast<uint64_t>(config_.validation_seed));
  std::vector<int64_t> part;
  for (int64_t i = 0; i < train.size(); ++i) {
    if (held_out[static_cast<size_t>(i)] == (name == "val")) part.push_back(i);
  }
  return train.subset(std::move(part));
}

// Texts of the reviews of one split from `first` on, as many as may be in memory at a time.
std::vector<std::string> read_texts(const Reviews& reviews, int split, size_t first) {
  constexpr size_t kAtOnce = 64;  // of up to 1 MiB each
  size_t end = first;
  while (end < std::min(first + kAtOnce, reviews.keys.size()) && reviews.keys[end].split == split) {
    ++end;
  }
  return parallel_map(static_cast<int64_t>(end - first), 8, [&](int64_t i) {
    throw_if_stopped();
    return reviews.text(first + static_cast<size_t>(i));
  });
}

bool is_archive(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return !is_folder(path) && (name.find(".tar") != std::string::npos || name.ends_with(".tgz"));
}

ImportedData TextTask::import(const std::vector<std::string>& sources, const std::string& out,
                              Progress& progress) const {
  const bool are_tables = std::ranges::none_of(sources, [&](const std::string& source) {
    return is_archive(source) || !find_sources(source).empty();
  });
  if (sources.size() != 1 && !are_tables) {
    throw Error({.where = "lra data import text",
                 .what = std::to_string(sources.size()) + " sources",
                 .expected = "one: the folder aclImdb or aclImdb_v1.tar.gz; or tables"});
  }
  const std::string scratch = folder_of(without_trailing_slash(out));
  make_folder(scratch);
  const Reviews reviews = are_tables ? open_review_tables(sources, scratch, progress)
                                     : open_reviews(sources[0], progress);
  Manifest manifest = new_manifest(kTextTask, "imported");
  manifest.token_offset = 1;
  manifest.settings = {{"format", are_tables ? "tables" : "aclImdb"}};
  if (reviews.drawn_split) {
    manifest.settings["split_seed"] = "0";
    manifest.notes = {"the test was drawn: nothing in the table says which reviews are the test's"};
  }
  DatasetWriter writer(out, std::move(manifest),
                       static_cast<int64_t>(reviews.num_bytes + 64 * reviews.keys.size()));
  Hasher hasher;  // of names and texts: the same from the folder and from the archive
  std::string names;
  size_t next = 0;
  for (int split = 0; split < 2; ++split) {
    writer.begin_split(kReviewSplits[static_cast<size_t>(split)]);
    while (next < reviews.keys.size() && reviews.keys[next].split == split) {
      for (const std::string& text : read_texts(reviews, split, next)) {
        const std::string name = review_path(reviews.keys[next]);
        hasher.append(name + " " + std::to_string(text.size()) + "\n");
        hasher.append(text);
        names += name + "\n";
        writer.add(reviews.keys[next++].label,
                   std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
      }
    }
  }
  writer.manifest().source_hash = to_hex(hasher.digest());
  writer.add_side_file(kNamesFile, names);
  return completed(std::move(writer));
}

std::vector<std::string> TextTask::find_sources(const std::string& root) const {
  const fs::path base(root);
  if (is_folder(base / "aclImdb")) return {(base / "aclImdb").string()};
  for (const char* name : {"aclImdb_v1.tar.gz", "aclImdb_labeled.tar.gz"}) {
    if (is_file(base / name)) return {(base / name).string()};
  }
  const std::array parts = {"train/pos", "train/neg", "test/pos", "test/neg"};
  if (std::ranges::any_of(parts, [&](const char* part) { return is_folder(base / part); })) {
    return {root};
  }
  return {};
}

// The keys of all examples, in order; checked against the labels and sizes of the splits.
std::vector<ReviewKey> read_names(const Dataset& dataset) {
  const std::string content = dataset.read_side_file(kNamesFile);
  const auto refuse = [&](size_t line, const std::string& what) {
    throw Error({.where = dataset.folder() + "/" + kNamesFile + ":" + std::to_string(line),
                 .what = what,
                 .expected = "the name of the review, as train/neg/0_3.txt",
                 .advice = "import the dataset again"});
  };
  const Split train = dataset.split("train"), test = dataset.split("test");
  const auto num_examples = static_cast<size_t>(train.size() + test.size());
  std::vector<ReviewKey> keys;
  for (std::string_view rest = content; !rest.empty();) {
    const size_t line = keys.size() + 1;
    ReviewKey key;
    if (!parse_review_path(take_line(rest), key)) refuse(line, "is not the name of a review");
    if (line > num_examples) refuse(line, "there are more names than reviews");
    const auto index = static_cast<int64_t>(keys.size());
    const bool in_test = index >= train.size();
    const int32_t label = in_test ? test.label(index - train.size()) : train.label(index);
    if (key.split != int{in_test} || key.label != label) {
      refuse(line, "does not agree with split and label of the example");
    }
    keys.push_back(key);
  }
  if (keys.size() != num_examples) refuse(keys.size(), "there are fewer names than reviews");
  return keys;
}

// The ratings of the test split: they are in the names of the reviews, and tables of reviews have
// none.
std::vector<ExampleProperty> TextTask::example_properties(const Dataset& dataset,
                                                          const std::string& name) const {
  const bool is_test = name == "test" || (name == "val" && config_.validation == "test");
  if (!is_test || !dataset.manifest().side_files.contains(kNamesFile)) return {};
  const std::vector<ReviewKey> keys = read_names(dataset);
  ExampleProperty rating{.name = "rating", .values = {}};
  for (const ReviewKey& key : keys) {
    if (key.split == 1) rating.values.push_back(std::to_string(key.rating));
  }
  if (std::ranges::count(rating.values, "0") > 0) return {};
  return {rating};
}

checks::ExpectedData TextTask::expected(const Dataset&) const {
  return {.sizes = checks::sizes_of(config_),
          .published = checks::sizes_of(TextConfig{}),
          .published_examples = kTextExamples,
          .bin = 1000};
}

void write_reviews(const Dataset& dataset, const std::vector<ReviewKey>& keys,
                   const std::string& folder) {
  for (const char* part : {"train/neg", "train/pos", "test/neg", "test/pos"}) {
    make_folder(folder + "/" + part);
  }
  const Split train = dataset.split("train"), test = dataset.split("test");
  parallel_ranges(static_cast<int64_t>(keys.size()), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      throw_if_stopped();
      const std::string path = folder + "/" + review_path(keys[static_cast<size_t>(i)]);
      const std::span<const uint8_t> text =
          i < train.size() ? train.stored_bytes(i) : test.stored_bytes(i - train.size());
      NewFile(path).append(std::as_bytes(text));
    }
  });
}

void TextTask::export_official(const Dataset& dataset, const std::string& out) const {
  const std::vector<ReviewKey> keys = read_names(dataset);
  write_new_folder(out + "/aclImdb",
                   [&](const std::string& partial) { write_reviews(dataset, keys, partial); });
}

std::vector<checks::Fact> TextTask::check(const Dataset& dataset) const {
  std::vector<checks::Fact> facts = Task::check(dataset);
  for (const char* name : {"train", "test"}) {
    if (!dataset.has(name)) continue;
    const Split split = dataset.split(name);
    facts.push_back(checks::documents_fact(name, split, 1, config_.length));
    facts.push_back(checks::examples_fact(
        std::string("UTF-8 of ") + name, name, split, [&](int64_t i) -> std::string {
          return is_utf8(split.stored_bytes(i)) ? "" : "is not UTF-8";
        }));
  }
  return facts;
}

std::string TextTask::render(const Split& split, int64_t example) const {
  const std::span<const uint8_t> bytes = split.stored_bytes(example);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const int32_t label = split.label(example);
  return std::to_string(label) + (label == 1 ? " (positive), " : " (negative), ") +
         std::to_string(bytes.size()) + " bytes\n" + printable(text) + "\n";
}

std::vector<checks::Baseline> TextTask::baselines(const Dataset& dataset) const {
  const Split train = split(dataset, "train"), test = split(dataset, "test");
  return {checks::majority_baseline(train, test, kTextClasses),
          checks::byte_unigram_baseline(train, test, config_.length),
          checks::place_baseline(train, test, kTextClasses)};
}

// Size and MD5 as widely printed, by torchtext among others.
constexpr RemoteData kTextRemote = {
    .file = "aclImdb_v1.tar.gz",
    .urls = {"https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"},
    .bytes = 84125825,
    .md5 = "7c2ac02c03563afcf9b574c7e56c153a",
};

}  // namespace

constinit const TaskSpec kTextTask = task_spec<TextTask, TextConfig>({
    .name = "text",
    .title = "Byte-level text classification",
    .summary = "sentiment of an IMDb review read byte by byte; 2 classes",
    .paper = "Tay et al. 2021; Maas et al. 2011",
    .version = 1,
    .sources = "the folder aclImdb, or the one above it; or a tar archive of it, such as "
               "aclImdb_v1.tar.gz; or tables of text and label (.csv, .jsonl, .parquet), such as "
               "train.csv and test.csv",
    .remote = &kTextRemote,
});

}  // namespace lra::tasks
