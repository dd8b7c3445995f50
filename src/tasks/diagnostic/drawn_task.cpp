#include "tasks/diagnostic/drawn_task.h"

#include <algorithm>

#include "base/command_text.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "checks/facts.h"
#include "data/draw_distinct.h"
#include "io/progress.h"

namespace lra::tasks {
namespace {

constexpr int64_t kBlock = 4096;  // examples drawn at the same time

using Counts = std::map<int32_t, int64_t>;  // by label

// The smallest one of a tie.
int32_t most_frequent(const Counts& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
}

}  // namespace

struct DrawnTask::Drawn {
  std::vector<uint16_t> tokens;
  int32_t label = 0;
};

DrawnTask::Drawn DrawnTask::draw_example(uint64_t seed, int split, int64_t index,
                                         uint32_t redraw) const {
  RandomStream random(derive_key(seed, RandomUse::kSample, static_cast<uint32_t>(split),
                                 static_cast<uint32_t>(index), redraw));
  Drawn example{.tokens = draw(random)};
  const auto answers =
      place_labels(std::vector<int32_t>(example.tokens.begin(), example.tokens.end()));
  LRA_CHECK(!answers.empty());
  example.label = answers.back().label;
  return example;
}

void DrawnTask::write(const Drawn& example, DatasetWriter& writer) const {
  if (token_bytes() == 2) {
    const std::span<const uint16_t> tokens(example.tokens);
    writer.add(example.label, std::span(&tokens, 1));
    return;
  }
  writer.add(example.label, std::vector<uint8_t>(example.tokens.begin(), example.tokens.end()));
}

void DrawnTask::make(const MakeOptions& options, Progress& progress) const {
  const std::array<int64_t, 3> all = sizes(options);
  Manifest manifest = generated_manifest(spec_, settings_, options.seed, all);
  manifest.token_bytes = token_bytes();
  manifest.source_hash = hash_of_settings(manifest.settings);
  manifest.settings["token_ids"] = std::to_string(shape_.vocabulary);  // for Python
  manifest.settings["classes"] = std::to_string(shape_.num_classes);
  DatasetWriter writer(options.out, std::move(manifest),
                       num_to_make(options) * (shape_.length * token_bytes() + 16));
  FirstSeen seen;
  for (int split = 0; split < 3; ++split) {
    writer.begin_split(kSplitNames[static_cast<size_t>(split)]);
    draw_distinct(
        all[static_cast<size_t>(split)], kBlock, seen,
        [&](int64_t index, uint32_t redraw) {
          return draw_example(options.seed, split, index, redraw);
        },
        [](const Drawn& example) { return hash128(std::as_bytes(std::span(example.tokens))); },
        [&](int64_t, uint32_t times) {
          if (times <= kMaxRedraws) return;
          throw Error(
              {.where = std::string(spec_.name),
               .what = "has fewer different examples than " + thousands(num_to_make(options)),
               .expected = "splits without a common example",
               .advice = "set task.num_train lower, or a longer sequence"});
        },
        [&](std::span<const Drawn> examples) {
          for (const Drawn& example : examples) write(example, writer);
          progress.update(static_cast<int64_t>(examples.size()));
        });
  }
  writer.finish();
}

void DrawnTask::refuse_other_settings(const Dataset& dataset) const {
  const std::map<std::string, std::string>& stated = dataset.manifest().settings;
  for (const auto& [key, wanted] : settings_) {
    const auto found = stated.find(key);
    if (found == stated.end() || found->second == wanted || key == "min_length") continue;
    if (key == "length" && std::stoll(found->second) <= shape_.length) continue;
    throw Error({.where = dataset.folder(),
                 .what = "was made with " + key + " " + in_quotes(found->second, 100),
                 .expected = wanted,
                 .advice = "set task." + key + ", or name another data folder"});
  }
}

ImportedData DrawnTask::import(const std::vector<std::string>&, const std::string&,
                               Progress&) const {
  throw Error(
      {.where = std::string(spec_.name),
       .what = "has no official files: its examples are drawn",
       .expected = "lra data make",
       .advice = "make them with: " + command_text({"data", "make", std::string(spec_.name)})});
}

void DrawnTask::export_official(const Dataset&, const std::string&) const {
  throw Error({.where = std::string(spec_.name),
               .what = "has no official layout to write",
               .advice = "read the prepared data with lra.data (docs/data_format.md)"});
}

checks::Fact DrawnTask::label_fact(const Dataset& dataset, const std::string& name) const {
  const Split split = dataset.split(name);
  return checks::examples_fact("labels of " + name, name, split, [&](int64_t i) -> std::string {
    const std::vector<PlaceLabel> labels = place_labels(split.all_tokens(i));
    if (!labels.empty() && labels.back().label == split.label(i)) return "";
    return "label is " + std::to_string(split.label(i)) + ", the last answer " +
           (labels.empty() ? "is missing" : std::to_string(labels.back().label));
  });
}

std::vector<checks::Fact> DrawnTask::check(const Dataset& dataset) const {
  refuse_other_settings(dataset);  // which decide what an answer is
  std::vector<checks::Fact> facts = Task::check(dataset);
  for (const char* name : kSplitNames) {
    if (dataset.has(name)) facts.push_back(label_fact(dataset, name));
  }
  return facts;
}

std::string DrawnTask::render(const Split& split, int64_t example) const {
  const std::vector<int32_t> tokens = split.all_tokens(example);
  std::vector<std::string> words;
  for (const int32_t token : tokens) words.push_back(token_text(token));
  for (const PlaceLabel& answer : place_labels(tokens)) {
    words[static_cast<size_t>(answer.place)] += "=" + std::to_string(answer.label);
  }
  std::string text = std::to_string(tokens.size()) + " tokens, answers behind '='\n";
  for (const std::string& word : words) text += word + " ";
  text.back() = '\n';
  return text;
}

std::vector<checks::Baseline> DrawnTask::baselines(const Dataset& dataset) const {
  constexpr int64_t kMostExamples = 10000;
  Counts of_all = {{0, 0}};
  std::map<int32_t, Counts> of_token;
  // Calls `visit` with the token and the label of each place.
  const auto visit_places = [&](const Split& split, int64_t count, const auto& visit) {
    for (int64_t i = 0; i < std::min(split.size(), count); ++i) {
      const std::vector<int32_t> tokens = split.all_tokens(i);
      for (const PlaceLabel& answer : place_labels(tokens)) {
        visit(tokens[static_cast<size_t>(answer.place)], answer.label);
      }
    }
  };
  visit_places(dataset.split("train"), kMostExamples, [&](int32_t token, int32_t label) {
    ++of_all[label];
    ++of_token[token][label];
  });
  const int32_t majority = most_frequent(of_all);
  int64_t count = 0, by_majority = 0, by_token = 0;
  visit_places(dataset.split("test"), INT64_MAX, [&](int32_t token, int32_t label) {
    const auto known = of_token.find(token);
    ++count;
    by_majority += label == majority;
    by_token += label == (known == of_token.end() ? majority : most_frequent(known->second));
  });
  const auto share = [&](int64_t right) {
    return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(1, count));
  };
  std::vector<checks::Baseline> all = {{.name = "majority", .accuracy = share(by_majority)},
                                       {.name = "token at the place", .accuracy = share(by_token)}};
  if (const auto own = own_baseline()) all.push_back(*own);
  return all;
}

}  // namespace lra::tasks
