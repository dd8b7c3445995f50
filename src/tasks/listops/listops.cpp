// Long ListOps (Tay et al., Long Range Arena, ICLR 2021, section 2.2.1; the released generator).
//
// Where we differ from the release: symbols have fixed ids (listops_expression.h), samples are a
// function of the seed, and duplicates are drawn again, so the three splits have their full sizes.
//
// Settings that the release does not have make a control of it (docs/diagnostics.md): trees of one
// operator inside the other, of some operators, and with empty tokens between the symbols.
#include <algorithm>
#include <array>

#include "base/command_text.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text_format.h"
#include "checks/baseline.h"
#include "checks/facts.h"
#include "data/files.h"
#include "data/new_folder.h"
#include "data/stopping.h"
#include "io/input_file.h"
#include "io/progress.h"
#include "tasks/all.h"
#include "tasks/listops/expression.h"
#include "tasks/listops/generator.h"
#include "tasks/listops/tsv.h"

namespace lra::tasks {
namespace {

constexpr const char* kOfficialFolder = "listops-1000";
constexpr size_t kExportBytes = size_t{1} << 20;  // of text in memory

struct ListOpsConfig {
  int64_t length = 2000;
  int64_t min_length = 500;
  int64_t max_length = 2000;
  int64_t max_depth = 10;
  int64_t max_args = 10;
  int64_t min_args = 2;
  std::string tree = "random", operators = "all";
  int64_t filler = 0;
  int64_t num_train = 96000;
  int64_t num_val = 2000;
  int64_t num_test = 2000;

  void fields(auto& f) {
    f("length", length, "tokens per expression; longer expressions are cut", between(1, 1 << 20));
    f("min_length", min_length, "generated expressions have more tokens than this",
      between(0, 1 << 20));
    f("max_length", max_length, "generated expressions have fewer tokens than this",
      between(2, 1 << 20));
    f("max_depth", max_depth, "depth at which only digits are drawn; the root has depth 1",
      between(1, 1000));
    f("max_args", max_args, "maximum number of arguments of an operator", between(2, 1000));
    f("min_args", min_args, "minimum number of arguments of an operator", between(2, 1000));
    f("tree", tree,
      "random: as published; spine: max_depth - 1 operators, one inside the other, and digits",
      one_of({"random", "spine"}));
    f("operators", operators, "operators that are drawn",
      one_of({"all", "min_max", "med", "sum_mod"}));
    f("filler", filler, "empty tokens behind each symbol; they count in no other length but this",
      between(0, 1000));
    f("num_train", num_train, "examples generated for training", between(0, 1e8));
    f("num_val", num_val, "examples generated for validation", between(0, 1e8));
    f("num_test", num_test, "examples generated for the test", between(0, 1e8));
  }
  void check() const {
    if (min_args > max_args) {
      throw Error({.where = "task.min_args",
                   .what = "is " + std::to_string(min_args),
                   .expected = "at most max_args, " + std::to_string(max_args)});
    }
    if (min_length + 1 < max_length) return;
    throw Error({.where = "task.min_length",
                 .what = "is " + std::to_string(min_length),
                 .expected = "at least 2 less than max_length",
                 .advice = "both bounds are exclusive"});
  }
};

std::vector<uint8_t> operators_named(const std::string& name) {
  if (name == "min_max") return {kListOpsMin, kListOpsMax};
  if (name == "med") return {kListOpsMed};
  if (name == "sum_mod") return {kListOpsSumMod};
  return {kListOpsMin, kListOpsMax, kListOpsMed, kListOpsSumMod};
}

std::vector<uint8_t> without_filler(std::span<const uint8_t> tokens, int64_t filler) {
  std::vector<uint8_t> symbols;
  const auto step = static_cast<size_t>(filler + 1);
  for (size_t i = 0; i < tokens.size(); i += step) symbols.push_back(tokens[i]);
  return symbols;
}

// The settings of the release, as a manifest states them.
std::map<std::string, std::string> tree_settings(const ListOpsConfig& config) {
  return {{"min_length", std::to_string(config.min_length)},
          {"max_length", std::to_string(config.max_length)},
          {"max_depth", std::to_string(config.max_depth)},
          {"max_args", std::to_string(config.max_args)}};
}

// Settings that the released generator does not have.
std::map<std::string, std::string> control_settings(const ListOpsConfig& config) {
  return {{"min_args", std::to_string(config.min_args)},
          {"tree", config.tree},
          {"operators", config.operators},
          {"filler", std::to_string(config.filler)}};
}

class ListOpsTask : public Task {
 public:
  explicit ListOpsTask(const ListOpsConfig& config) : config_(config) {}

  void refuse_other_settings(const Dataset& dataset) const override;
  checks::ExpectedData expected(const Dataset& dataset) const override;
  checks::InputKind input() const override { return checks::InputKind::kTokens; }
  TaskShape shape() const override {
    return {.length = config_.length,
            .vocabulary = kListOpsVocabulary,
            .num_classes = kNumListOpsClasses};
  }

  bool can_generate() const override { return true; }
  std::array<int64_t, 3> usual_sizes() const override {
    return {config_.num_train, config_.num_val, config_.num_test};
  }
  void make(const MakeOptions& options, Progress& progress) const override;
  ImportedData import(const std::vector<std::string>& sources, const std::string& out,
                      Progress& progress) const override;
  std::vector<std::string> find_sources(const std::string& root) const override;
  void export_official(const Dataset& dataset, const std::string& out) const override;
  std::vector<checks::Fact> check(const Dataset& dataset) const override;
  std::string render(const Split& split, int64_t example) const override;
  std::string token_text(int32_t token) const override {
    return std::string(listops_symbol_text(static_cast<uint8_t>(token)));
  }
  std::vector<ExampleProperty> example_properties(const Dataset& dataset,
                                                  const std::string& name) const override;
  std::vector<checks::Baseline> baselines(const Dataset& dataset) const override;

 private:
  ListOpsSettings generator_settings() const {
    return {.min_length = config_.min_length,
            .max_length = config_.max_length,
            .max_depth = config_.max_depth,
            .max_args = config_.max_args,
            .min_args = config_.min_args,
            .spine = config_.tree == "spine",
            .operators = operators_named(config_.operators)};
  }
  std::vector<uint8_t> with_filler(const std::vector<uint8_t>& symbols) const {
    const auto step = static_cast<size_t>(config_.filler + 1);
    std::vector<uint8_t> tokens(symbols.size() * step, kListOpsUnknown);
    for (size_t i = 0; i < symbols.size(); ++i) tokens[i * step] = symbols[i];
    return tokens;
  }
  // The settings the data claims to follow: its own when it was generated.
  ListOpsConfig claimed(const Manifest& manifest) const;
  checks::Fact target_fact(const Dataset& dataset, const std::string& name,
                           const ListOpsConfig& config) const;

  ListOpsConfig config_;
};

// Refuses expressions of another shape: their figures would be indistinguishable from those of this
// one. Imported files may follow any settings.
void ListOpsTask::refuse_other_settings(const Dataset& dataset) const {
  const Manifest& manifest = dataset.manifest();
  if (manifest.source != "generated") return;
  const auto compare = [&](const std::string& key, const std::string& made_with,
                           const std::string& wanted) {
    if (made_with == wanted) return;
    const std::string name = "task." + key;
    throw Error({.where = dataset.folder(),
                 .what = "was made with " + name + "=" + printable(made_with),
                 .expected = wanted,
                 .advice = "set " + name + "=" + printable(made_with) +
                           ", or make other data and name its folder with --data: " +
                           command_text({"data", "make", "listops", "--out", "other/listops",
                                         "--set", name + "=" + wanted})});
  };
  for (const auto& [key, wanted] : tree_settings(config_)) {
    const auto found = manifest.settings.find(key);
    if (found != manifest.settings.end()) compare(key, found->second, wanted);
  }
  const auto of_release = control_settings(ListOpsConfig{});
  for (const auto& [key, wanted] : control_settings(config_)) {
    const auto found = manifest.settings.find(key);
    compare(key, found == manifest.settings.end() ? of_release.at(key) : found->second, wanted);
  }
}

checks::ExpectedData ListOpsTask::expected(const Dataset& dataset) const {
  const ListOpsConfig config = claimed(dataset.manifest());
  return {.sizes = checks::sizes_of(config),
          .published = checks::sizes_of(ListOpsConfig{}),
          .shortest = (config.min_length + 1) * (config.filler + 1),
          .longest = (config.max_length - 1) * (config.filler + 1),
          .forbids_duplicates = true};
}

void ListOpsTask::make(const MakeOptions& options, Progress& progress) const {
  const std::array<int64_t, 3> counts = sizes(options);
  for (const int64_t count : counts) {
    if (count >= 0 && count <= 100000000) continue;
    throw Error({.where = "lra data make",
                 .what = std::to_string(count) + " examples",
                 .expected = "0 to 100,000,000 per split"});
  }
  const ListOpsSettings settings = generator_settings();
  Manifest manifest =
      generated_manifest(kListOpsTask, tree_settings(config_), options.seed, counts);
  // Those of the release are not stated: its data has the hash that it always had.
  const auto of_release = control_settings(ListOpsConfig{});
  for (const auto& [key, value] : control_settings(config_)) {
    if (value != of_release.at(key)) manifest.settings[key] = value;
  }
  manifest.source_hash = hash_of_settings(manifest.settings);
  DatasetWriter writer(options.out, std::move(manifest),
                       num_to_make(options) * (settings.max_length * (config_.filler + 1) + 16));
  int begun = 0;  // splits begun so far; empty ones get no example that would begin them
  const auto begin_up_to = [&](int split) {
    for (; begun <= split; ++begun) writer.begin_split(kSplitNames[static_cast<size_t>(begun)]);
  };
  const auto notes = generate_listops(
      settings, options.seed, counts,
      [&](std::span<const ListOpsExample> examples) {
        for (const ListOpsExample& example : examples) {
          begin_up_to(example.split);
          writer.add(example.label, with_filler(example.symbols));
        }
      },
      progress);
  begin_up_to(2);
  constexpr size_t kMostNotes =
      1000;  // with short expressions most samples may have been drawn again
  for (size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i)
    writer.manifest().notes.push_back(notes[i]);
  if (notes.size() > kMostNotes) {
    writer.manifest().notes.push_back(thousands(static_cast<int64_t>(notes.size() - kMostNotes)) +
                                      " more samples drawn again: duplicates");
  }
  writer.finish();
}

ImportedData ListOpsTask::import(const std::vector<std::string>& sources, const std::string& out,
                                 Progress& progress) const {
  const std::array<std::string, 3> files = listops_source_files(sources);
  Manifest manifest = new_manifest(kListOpsTask, "imported");
  manifest.settings = {{"format", kOfficialFolder}};
  // The text takes at least twice the room of the tokens.
  DatasetWriter writer(out, std::move(manifest), static_cast<int64_t>(size_of_files(files) / 2));
  const ListOpsTsvLimits limits{.arity = {.least = 2, .most = config_.max_args},
                                .max_tokens = std::max(config_.length, config_.max_length)};
  Hasher hasher;
  for (size_t i = 0; i < files.size(); ++i) {
    writer.begin_split(kSplitNames[i]);
    const InputFile file(files[i]);
    Hasher file_hasher;
    const auto read_at = [&](uint64_t offset, char* to, size_t size) {
      const size_t count = file.read_at(offset, to, size);
      file_hasher.append(std::string_view(to, count));
      return count;
    };
    read_listops_tsv(read_at, files[i], limits, [&](std::span<const uint8_t> symbols, int label) {
      writer.add(label, symbols);
      progress.update();
    });
    hasher.append(to_hex(file_hasher.digest()));
  }
  writer.manifest().source_hash = to_hex(hasher.digest());
  return completed(std::move(writer));
}

std::vector<std::string> ListOpsTask::find_sources(const std::string& root) const {
  return find_listops_files(root);
}

void ListOpsTask::export_official(const Dataset& dataset, const std::string& out) const {
  if (config_.filler > 0) {
    throw Error({.where = "task.filler",
                 .what = "empty tokens have no symbol in the official files",
                 .expected = "task.filler = 0"});
  }
  write_new_folder(out + "/" + kOfficialFolder, [&](const std::string& partial) {
    for (const char* name : kSplitNames) {
      const Split split = dataset.split(name);
      NewFile file(partial + "/basic_" + name + ".tsv");
      std::string text = kListOpsTsvHeader;
      for (int64_t i = 0; i < split.size(); ++i) {
        throw_if_stopped();
        const std::span<const uint8_t> symbols = split.stored_bytes(i);
        if (evaluate_listops(symbols).value != split.label(i)) {
          throw Error({.where = std::string(name) + " example " + std::to_string(i),
                       .what = "is not an expression with its value",
                       .advice = "check it with: " +
                                 command_text({"data", "check", "listops", dataset.folder()})});
        }
        append_listops_line(symbols, split.label(i), text);
        if (text.size() < kExportBytes && i + 1 < split.size()) continue;
        file.append(std::as_bytes(std::span(text)));
        text.clear();
      }
      file.append(std::as_bytes(std::span(text)));
    }
  });
}

ListOpsConfig ListOpsTask::claimed(const Manifest& manifest) const {
  ListOpsConfig config = config_;
  if (manifest.source != "generated") return config;
  config.min_args = ListOpsConfig{}.min_args;
  config.filler = 0;
  for (const auto& [key, value] :
       {std::pair("min_length", &config.min_length), std::pair("max_length", &config.max_length),
        std::pair("min_args", &config.min_args), std::pair("max_args", &config.max_args),
        std::pair("filler", &config.filler), std::pair("num_train", &config.num_train),
        std::pair("num_val", &config.num_val), std::pair("num_test", &config.num_test)}) {
    *value = number_setting(manifest, key).value_or(*value);
  }
  return config;
}

// Evaluates every expression again; names the first that is wrong.
checks::Fact ListOpsTask::target_fact(const Dataset& dataset, const std::string& name,
                                      const ListOpsConfig& config) const {
  const Split split = dataset.split(name);
  return checks::examples_fact("targets of " + name, name, split, [&](int64_t i) -> std::string {
    const ListOpsResult result =
        evaluate_listops(without_filler(split.stored_bytes(i), config.filler),
                         {.least = config.min_args, .most = config.max_args});
    if (!result.ok()) {
      return std::string(result.problem) + " at token " + std::to_string(result.position + 1);
    }
    if (result.value == split.label(i)) return "";
    return "label is " + std::to_string(split.label(i)) + ", the expression evaluates to " +
           std::to_string(result.value);
  });
}

std::vector<checks::Fact> ListOpsTask::check(const Dataset& dataset) const {
  const ListOpsConfig config = claimed(dataset.manifest());
  std::vector<checks::Fact> facts = Task::check(dataset);
  for (const char* name : kSplitNames) {
    if (dataset.has(name)) facts.push_back(target_fact(dataset, name, config));
  }
  return facts;
}

std::string ListOpsTask::render(const Split& split, int64_t example) const {
  const std::vector<uint8_t> symbols = without_filler(split.stored_bytes(example), config_.filler);
  std::string text = "value " + std::to_string(split.label(example)) + ", " +
                     std::to_string(split.stored_bytes(example).size()) + " tokens\n";
  if (evaluate_listops(symbols).ok()) return text + render_listops(symbols);
  for (const uint8_t symbol : symbols) text += std::string(listops_symbol_text(symbol)) + " ";
  return text + "\n";
}

std::vector<ExampleProperty> ListOpsTask::example_properties(const Dataset& dataset,
                                                             const std::string& name) const {
  ExampleProperty depth{.name = "depth", .values = {}}, root{.name = "root operator", .values = {}};
  const Split split = dataset.split(name);
  for (int64_t i = 0; i < split.size(); ++i) {
    const std::span<const uint8_t> symbols = split.stored_bytes(i);
    depth.values.push_back(std::to_string(listops_depth(symbols)));
    const std::string_view first = symbols.empty() ? "?" : listops_symbol_text(symbols[0]);
    root.values.emplace_back(first.starts_with('[') ? first.substr(1) : first);
  }
  return {depth, root};
}

std::vector<checks::Baseline> ListOpsTask::baselines(const Dataset& dataset) const {
  const Split train = dataset.split("train"), test = dataset.split("test");
  return {checks::majority_baseline(train, test, kNumListOpsClasses),
          checks::first_token_baseline("root operator", train, test, kNumListOpsClasses),
          checks::place_baseline(train, test, kNumListOpsClasses)};
}

constexpr RemoteData kListOpsRemote = lra_release("lra_release/lra_release/listops-1000");

}  // namespace

constinit const TaskSpec kListOpsTask = task_spec<ListOpsTask, ListOpsConfig>({
    .name = "listops",
    .title = "Long ListOps",
    .summary = "value of a nested list expression of 501 to 1999 symbols; 10 classes",
    .paper = "Tay et al. 2021; Nangia and Bowman 2018",
    .version = 1,
    .sources = "the folder listops-1000, or one above it, such as lra_release; or the files "
               "basic_train.tsv, basic_val.tsv and basic_test.tsv",
    .remote = &kListOpsRemote,
    .mask_fraction = 0.1,
});

}  // namespace lra::tasks
