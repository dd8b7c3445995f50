// Byte-level document matching (Tay et al., ICLR 2021, section 2.2.3): pairs of papers of the ACL
// Anthology Network; label 1 if one cites the other. Raw bytes, id = byte + 1, 0 is padding.
//
// As in the authors' reader a text is first cut to 10000 bytes, which is what the dataset stores,
// and to the task's length when it is read. Examples are in the order of the files; the file "eval"
// is the validation set.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "base/text_format.h"
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
#include "tasks/retrieval/pair_files.h"

namespace lra::tasks {
namespace {

constexpr int64_t kRetrievalClasses = 2;
// The byte baseline learns from this many training pairs at most. They cost 4 s of processor time
// and 50 MB; all official ones would cost 25 s and 300 MB.
constexpr int64_t kMaxBaselinePairs = 25000;

struct RetrievalConfig {
  int64_t length = 4000;
  int64_t num_train = 147086;
  int64_t num_val = 18090;
  int64_t num_test = 17437;

  void fields(auto& f) {
    f("length", length, "bytes per document; longer documents are cut",
      between(1, static_cast<double>(kMaxPairTextBytes)));
    f("num_train", num_train, "pairs that lra data check expects for training", at_least(0));
    f("num_val", num_val, "pairs that lra data check expects for validation", at_least(0));
    f("num_test", num_test, "pairs that lra data check expects for the test", at_least(0));
  }
};

// The first three columns of a split's file, which the tokens do not say: the official file of ids.
std::string ids_file(size_t split) { return pair_file_name(split, 3); }

class RetrievalTask : public Task {
 public:
  explicit RetrievalTask(const RetrievalConfig& config) : config_(config) {}

  TaskShape shape() const override {
    return {.length = config_.length,
            .vocabulary = 257,
            .num_classes = kRetrievalClasses,
            .num_towers = 2};
  }
  ImportedData import(const std::vector<std::string>& sources, const std::string& out,
                      Progress& progress) const override;
  std::vector<std::string> find_sources(const std::string& root) const override;
  void export_official(const Dataset& dataset, const std::string& out) const override;
  checks::InputKind input() const override { return checks::InputKind::kText; }
  checks::ExpectedData expected(const Dataset& dataset) const override;
  std::vector<checks::Fact> check(const Dataset& dataset) const override;
  std::string render(const Split& split, int64_t example) const override;
  std::string token_text(int32_t token) const override { return byte_token_text(token); }
  std::vector<checks::Baseline> baselines(const Dataset& dataset) const override;

 private:
  RetrievalConfig config_;
};

PairFiles files_of(const std::vector<std::string>& sources) {
  if (sources.size() != 1 && sources.size() != 2) {
    throw Error({.where = "lra data import retrieval",
                 .what = std::to_string(sources.size()) + " sources",
                 .expected = "the folder with new_aan_pairs.*.tsv; for files with ids only also "
                             "the texts, a folder or a file of lines id TAB text"});
  }
  PairFiles files = find_pair_files(sources[0]);
  if (files.num_columns == 0) {
    throw Error({.where = sources[0],
                 .what = is_folder(sources[0])
                             ? "holds no pairs; it holds " + quoted_list(data_names_in(sources[0]))
                             : std::string("is not a folder"),
                 .expected = "new_aan_pairs.{train,eval,test}.tsv, or the same as .only_ids.tsv"});
  }
  const bool needs_texts = files.num_columns == 3;
  if (needs_texts != (sources.size() == 2)) {
    throw Error({.where = sources[0],
                 .what = needs_texts ? "names the papers only" : "has the texts in its pairs",
                 .expected = needs_texts ? "their texts as a second source" : "one source"});
  }
  return files;
}

std::span<const uint8_t> stored_part(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), std::min(text.size(), kMaxPairTextBytes)};
}

// Copies one split; `texts` is null if they are in the pairs. Returns its ids.
std::string import_split(const std::string& path, const PaperTexts* texts, DatasetWriter& writer,
                         Hasher& hasher, Progress& progress) {
  std::string ids;
  read_pairs(path, texts ? 3 : 5, [&](const PairLine& pair) {
    const std::string where = path + ":" + std::to_string(pair.line);
    std::array<std::string, 2> found;
    const auto part = [&](size_t tower) {
      if (!texts) {
        // Only the stored part is checked, and as many bytes more as a byte order mark has.
        const std::string_view text = tower == 0 ? pair.text1 : pair.text2;
        return stored_part(checked_text(text.substr(0, kMaxPairTextBytes + 3), where));
      }
      std::string& text = found.at(tower) = texts->text(tower == 0 ? pair.id1 : pair.id2, where);
      // An export has them as columns. Line ends are not in a text that came as a line.
      std::replace(text.begin(), text.end(), '\t', ' ');
      return stored_part(text);
    };
    const std::array stored = {part(0), part(1)};
    writer.add(pair.label, stored);
    ids.append(pair.ids) += '\n';
    for (const std::span<const uint8_t> text : stored) hasher.append(std::as_bytes(text));
    progress.update();
  });
  hasher.append(ids);
  return ids;
}

ImportedData RetrievalTask::import(const std::vector<std::string>& sources, const std::string& out,
                                   Progress& progress) const {
  refuse_existing(without_trailing_slash(out));
  const PairFiles files = files_of(sources);
  std::unique_ptr<PaperTexts> texts;
  if (files.num_columns == 3) texts = std::make_unique<PaperTexts>(sources[1]);
  Manifest manifest = new_manifest(kRetrievalTask, "imported");
  manifest.num_towers = 2;
  manifest.token_offset = 1;
  manifest.settings = {{"format", "new_aan_pairs"},
                       {"text_bytes", std::to_string(kMaxPairTextBytes)}};
  // Their size is unknown if the files of pairs hold no texts.
  const uint64_t most_bytes = texts ? 0 : size_of_files(files.paths);
  DatasetWriter writer(out, std::move(manifest), static_cast<int64_t>(most_bytes));
  Hasher hasher;
  for (size_t split = 0; split < kSplitNames.size(); ++split) {
    writer.begin_split(kSplitNames[split]);
    const std::string ids = import_split(files.paths[split], texts.get(), writer, hasher, progress);
    writer.add_side_file(ids_file(split), ids);
  }
  writer.manifest().source_hash = to_hex(hasher.digest());
  return completed(std::move(writer));
}

std::vector<std::string> RetrievalTask::find_sources(const std::string& root) const {
  const PairFiles files = find_pair_files(root);
  if (files.num_columns == 0) return {};
  if (files.num_columns == 5) {
    return {std::filesystem::path(files.paths[0]).parent_path().string()};
  }
  throw Error({.where = files.paths[0],
               .what = "names the papers of its pairs only",
               .expected = "new_aan_pairs.train.tsv with their texts",
               .advice =
                   "'lra data import retrieval FOLDER TEXTS --out DIR' puts in the texts of a "
                   "folder or file"});
}

void export_split(const Split& split, const std::string& ids, const std::string& ids_path,
                  AtomicFile& file) {
  const auto refuse = [&](int64_t line, const std::string& what) {
    throw Error({.where = ids_path + ":" + std::to_string(line),
                 .what = what,
                 .expected = "label TAB id1 TAB id2 of every example",
                 .advice = "import the dataset again"});
  };
  std::string_view rest = ids;
  for (int64_t i = 0; i < split.size(); ++i) {
    throw_if_stopped();
    if (rest.empty()) refuse(i + 1, "there are fewer lines than examples");
    const std::string_view line = take_line(rest);
    if (!line.starts_with(split.label(i) == 1 ? '1' : '0') ||
        std::count(line.begin(), line.end(), '\t') != 2) {
      refuse(i + 1, "does not agree with the example");
    }
    file.append(line);
    for (int64_t tower = 0; tower < 2; ++tower) {
      file.append(std::string_view("\t"));
      file.append(std::as_bytes(split.stored_bytes(i, tower)));
    }
    // A reader takes one CR before the LF for a part of the line's end.
    const std::span<const uint8_t> last = split.stored_bytes(i, 1);
    file.append(std::string_view(!last.empty() && last.back() == '\r' ? "\r\n" : "\n"));
  }
  if (!rest.empty()) refuse(split.size() + 1, "there are more lines than examples");
}

void RetrievalTask::export_official(const Dataset& dataset, const std::string& out) const {
  make_folder(out);
  for (size_t split = 0; split < kSplitNames.size(); ++split) {
    const std::string path = out + "/" + pair_file_name(split, 5);
    if (!is_there(path)) continue;
    throw Error({.where = path,
                 .what = "exists already",
                 .advice = "choose another --out or move it away"});
  }
  // None appears before all are written.
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (size_t split = 0; split < kSplitNames.size(); ++split) {
    files.push_back(std::make_unique<AtomicFile>(out + "/" + pair_file_name(split, 5)));
    export_split(dataset.split(kSplitNames[split]), dataset.read_side_file(ids_file(split)),
                 dataset.folder() + "/" + ids_file(split), *files.back());
  }
  for (const auto& file : files) file->commit();
}

checks::ExpectedData RetrievalTask::expected(const Dataset&) const {
  return {.sizes = checks::sizes_of(config_),
          .published = checks::sizes_of(RetrievalConfig{}),
          .longest = static_cast<int64_t>(kMaxPairTextBytes),
          .bin = 1000};
}

std::vector<checks::Fact> RetrievalTask::check(const Dataset& dataset) const {
  std::vector<checks::Fact> facts = Task::check(dataset);
  for (const char* name : kSplitNames) {
    if (!dataset.has(name)) continue;
    facts.push_back(checks::documents_fact(name, dataset.split(name), 2, config_.length));
  }
  return facts;
}

std::string RetrievalTask::render(const Split& split, int64_t example) const {
  const int32_t label = split.label(example);
  std::string text = std::to_string(label) + (label == 1 ? " (linked)\n" : " (not linked)\n");
  for (int64_t tower = 0; tower < 2; ++tower) {
    const std::span<const uint8_t> bytes = split.stored_bytes(example, tower);
    const std::string_view document(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    text += "document " + std::to_string(tower + 1) + ", " + std::to_string(bytes.size()) +
            " bytes: " + printable(document) + "\n";
  }
  return text;
}

std::vector<checks::Baseline> RetrievalTask::baselines(const Dataset& dataset) const {
  const Split train = dataset.split("train"), test = dataset.split("test");
  const Split some = train.subset(drawn_examples(train.size(), kMaxBaselinePairs));
  return {checks::majority_baseline(train, test, kRetrievalClasses),
          checks::byte_unigram_baseline(some, test, config_.length, 2),
          checks::place_baseline(train, test, kRetrievalClasses, 2)};
}

constexpr RemoteData kRetrievalRemote = lra_release("tsv_data");

}  // namespace

constinit const TaskSpec kRetrievalTask = task_spec<RetrievalTask, RetrievalConfig>({
    .name = "retrieval",
    .title = "Byte-level document matching",
    .summary = "whether two ACL papers are linked by a citation; two documents, 2 classes",
    .paper = "Tay et al. 2021; Radev et al. 2013",
    .version = 1,
    .sources =
        "a folder with new_aan_pairs.{train,eval,test}.tsv, or one above it, such as lra_release; "
        "or one with new_aan_pairs.*.only_ids.tsv, followed by the texts: a folder with a file "
        "for each paper, or a file with lines id TAB text",
    .remote = &kRetrievalRemote,
});

}  // namespace lra::tasks
