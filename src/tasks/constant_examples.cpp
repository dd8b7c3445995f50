#include "tasks/constant_examples.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "base/text_format.h"
#include "data/scaling.h"
#include "tasks/own/custom.h"

namespace lra::tasks {
namespace {

using Words = std::vector<int32_t>;

// The words of each position if they are the same everywhere.
std::optional<Words> constant_position(const Split& split, int64_t example, int64_t num_towers) {
  constexpr int64_t kFewestPositions = 8;
  const auto step = static_cast<size_t>(split.words_per_token());
  Words words, first;
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    const int64_t length = split.sequence_length(example, tower);
    if (length < kFewestPositions) return std::nullopt;
    words.resize(static_cast<size_t>(length) * step);
    split.read_tokens(example, tower, words);
    if (first.empty()) first.assign(words.begin(), words.begin() + static_cast<ptrdiff_t>(step));
    for (size_t at = 0; at < words.size(); ++at) {
      if (words[at] != first[at % step]) return std::nullopt;
    }
  }
  return first;
}

// Zero is not quite zero after it was standardized and stored as float32.
double original_value(double stored, size_t channel, const Scaling& scaling) {
  constexpr double kRounding = 1e-5;
  const double value = scaling.original(stored, channel);
  const double size = std::abs(scaling.original(0, channel)) + scaling.deviation(channel);
  return std::abs(value) < kRounding * size && !scaling.means.empty() ? 0 : value;
}

// "nothing but 0", or what can be said of several values.
std::string content_of(const Words& position, const Dataset& dataset) {
  const Manifest& manifest = dataset.manifest();
  std::vector<std::string> values;
  const Scaling scaling = scaling_of(dataset);
  for (size_t c = 0; c < position.size(); ++c) {
    values.push_back(
        has_own_values(manifest)
            ? short_number(original_value(std::bit_cast<float>(position[c]), c, scaling))
            : std::to_string(position[c] - manifest.token_offset));
  }
  const bool is_one =
      std::ranges::all_of(values, [&](const std::string& v) { return v == values[0]; });
  return is_one ? "nothing but " + values[0] : "the same values at all positions";
}

ConstantExamples constant_examples_of(const std::string& name, const Dataset& dataset) {
  constexpr int64_t kFewest = 10, kOneIn = 20;
  constexpr double kNearlyAll = 0.9;
  const Split split = dataset.split(name);
  ConstantExamples found;
  std::map<Words, int64_t> counts;
  int64_t count = 0;
  for (int64_t i = 0; i < split.size(); ++i) {
    const auto position = constant_position(split, i, dataset.manifest().num_towers);
    found.is_constant.push_back(position.has_value());
    if (!position) continue;
    ++counts[*position];
    ++count;
  }
  if (count < kFewest || kOneIn * count < split.size()) return {};
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& pair) { return pair.second; });
  const bool are_alike = most->second == count;
  found.are_nearly_all =
      static_cast<double>(most->second) > kNearlyAll * static_cast<double>(split.size());
  found.doubt =
      thousands(count) + " of the " + thousands(split.size()) + " examples of " + name + " hold " +
      (are_alike
           ? content_of(most->first, dataset)
           : "one and the same at all positions, most often " + content_of(most->first, dataset)) +
      ": were their files empty?";
  return found;
}

}  // namespace

std::map<std::string, ConstantExamples> constant_examples(const Dataset& dataset) {
  std::map<std::string, ConstantExamples> found;
  const Manifest& manifest = dataset.manifest();
  if (!is_own(manifest) || is_own_text(manifest)) return found;
  for (const auto& [name, unused] : manifest.splits) {
    found[name] = constant_examples_of(name, dataset);
  }
  return found;
}

}  // namespace lra::tasks
