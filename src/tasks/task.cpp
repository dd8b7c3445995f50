#include "tasks/task.h"

#include "base/error.h"

namespace lra::tasks {

ImportedData completed(DatasetWriter writer, std::vector<checks::SharedGroup> groups) {
  writer.complete();
  return {std::move(writer), std::move(groups)};
}

std::array<int64_t, 3> Task::sizes(const MakeOptions& options) const {
  const auto [train, val, test] = usual_sizes();
  return {options.num_train.value_or(train), options.num_val.value_or(val),
          options.num_test.value_or(test)};
}

int64_t Task::num_to_make(const MakeOptions& options) const {
  const auto [train, val, test] = sizes(options);
  return train + val + test;
}

void Task::make(const MakeOptions&, Progress&) const {
  throw Error({.where = "lra data make",
               .what = "this task cannot be generated: its data is collected, not drawn",
               .advice = "use 'lra data fetch' or 'lra data import'"});
}

checks::DataFacts Task::data_facts(const Dataset& dataset) const {
  const TaskShape task = shape();
  const checks::ExpectedData data = expected(dataset);
  checks::DataFacts facts = {.stats = {.input = input(),
                                       .num_classes = task.num_classes,
                                       .num_towers = task.num_towers,
                                       .length = task.length},
                             .is_own = data.published.empty(),
                             .label_names = label_names(dataset),
                             .wanted = checks::counts_of(data.sizes),
                             .scaling = scaling_of(dataset)};
  if (!facts.is_own) {
    facts.published = checks::PublishedData{.counts = checks::counts_of(data.published),
                                            .examples = data.published_examples};
  }
  return facts;
}

std::vector<checks::Fact> Task::check(const Dataset& dataset) const {
  checks::ExpectedData data = expected(dataset);
  data.num_classes = shape().num_classes;
  data.label_names = label_names(dataset);
  return checks::standard_facts(dataset, data);
}

Manifest new_manifest(const TaskSpec& spec, const std::string& source) {
  Manifest manifest;
  manifest.task = spec.name;
  manifest.task_version = spec.version;
  manifest.source = source;
  return manifest;
}

Manifest generated_manifest(const TaskSpec& spec, std::map<std::string, std::string> settings,
                            uint64_t seed, const std::array<int64_t, 3>& sizes) {
  Manifest manifest = new_manifest(spec, "generated");
  manifest.settings = std::move(settings);
  manifest.settings["seed"] = std::to_string(seed);
  for (size_t i = 0; i < sizes.size(); ++i) {
    manifest.settings[std::string("num_") + kSplitNames[i]] = std::to_string(sizes[i]);
  }
  return manifest;
}

std::string byte_token_text(int32_t token) {
  if (token == 0) return "";
  const int byte = token - 1;
  if (byte >= 0x20 && byte < 0x7F) return {static_cast<char>(byte)};
  constexpr const char* kDigits = "0123456789abcdef";
  return std::string("\\x") + kDigits[byte >> 4 & 15] + kDigits[byte & 15];
}

}  // namespace lra::tasks
