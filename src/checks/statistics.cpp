#include "checks/statistics.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <span>

#include "base/parallel.h"
#include "checks/equal_examples.h"
#include "data/stopping.h"

namespace lra::checks {
namespace {

constexpr size_t kFewestChannels = 8, kShortestRun = 8;
// Fewest tokens, or letters, of an example that does not equal another by chance.
constexpr int64_t kFewestTokens = 16, kFewestLetters = 100;

// Statistics of some examples in a row.
class Pass {
 public:
  Pass(const Split& split, const StatsSettings& settings)
      : split_(split),
        settings_(settings),
        num_channels_(settings.input == InputKind::kValues
                          ? static_cast<size_t>(split.words_per_token())
                          : 1) {
    stats_.classes.resize(static_cast<size_t>(settings.num_classes));
    if (settings.input == InputKind::kText) stats_.texts.resize(stats_.classes.size());
    if (settings.input != InputKind::kTokens) stats_.channels.resize(num_channels_);
  }

  void add(int64_t example);
  SplitStats take() { return std::move(stats_); }

 private:
  void add_text(int64_t example, int64_t tower, int32_t label);
  void add_ends();
  void add_numbers();
  void add_axes();
  bool is_constant() const;

  const Split& split_;
  const StatsSettings& settings_;
  size_t num_channels_;
  SplitStats stats_;
  std::vector<int32_t> words_;               // of one sequence
  std::vector<std::vector<double>> values_;  // of the example, by channel
};

double number_of(int32_t word, InputKind input) {
  return input == InputKind::kValues ? double{std::bit_cast<float>(word)} : double(word);
}

bool is_white_space(std::span<const uint8_t> text) {
  return std::ranges::all_of(text, [](uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
}

// The hash of the last position if at least kShortestRun positions are like it, and not all.
std::optional<uint64_t> run_at_end(std::span<const int32_t> words, size_t width, bool at_begin) {
  const size_t length = words.size() / width;
  const auto position = [&](size_t i) {
    return words.subspan((at_begin ? i : length - 1 - i) * width, width);
  };
  size_t run = 1;
  while (run < length && std::ranges::equal(position(run), position(0))) ++run;
  if (run < kShortestRun || run == length) return {};
  return hash64(std::as_bytes(position(0)));
}

void Pass::add_text(int64_t example, int64_t tower, int32_t label) {
  const std::span<const uint8_t> bytes = split_.stored_bytes(example, tower);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t t = 0; t < kNumTextTraits; ++t) {
    stats_.texts[static_cast<size_t>(label)][t] += kTextTraits[t].has(text);
  }
}

void Pass::add_ends() {
  if (settings_.input == InputKind::kTokens && !words_.empty()) {
    ++stats_.first[words_.front()];
    ++stats_.last[words_.back()];
  }
  if (const auto run = run_at_end(words_, num_channels_, true)) ++stats_.begins[*run];
  if (const auto run = run_at_end(words_, num_channels_, false)) ++stats_.ends[*run];
}

void Pass::add_numbers() {
  for (size_t at = 0; at < words_.size(); ++at) {
    values_[at % num_channels_].push_back(number_of(words_[at], settings_.input));
  }
}

// Means over the pairs of one example, so that each example counts alike.
void Pass::add_axes() {
  const size_t size = values_[0].size();
  if (num_channels_ < kFewestChannels || size < kFewestChannels) return;
  const auto mean_of = [&](size_t channel_step, size_t position_step) {
    double sum = 0;
    for (size_t c = 0; c + channel_step < num_channels_; ++c) {
      const std::vector<double>&one = values_[c], &other = values_[c + channel_step];
      for (size_t i = 0; i + position_step < size; ++i) {
        const double apart = one[i] - other[i + position_step];
        sum += apart * apart;
      }
    }
    return sum / static_cast<double>((num_channels_ - channel_step) * (size - position_step));
  };
  stats_.axes.positions += mean_of(0, 1);
  stats_.axes.channels += mean_of(1, 0);
  stats_.axes.far_channels += mean_of(num_channels_ / 2, 0);
  ++stats_.axes.count;
}

// One position over and over.
bool Pass::is_constant() const {
  const size_t size = words_.size();
  return size >= kShortestRun * num_channels_ &&
         std::equal(words_.begin() + static_cast<ptrdiff_t>(num_channels_), words_.end(),
                    words_.begin());
}

void Pass::add(int64_t example) {
  const int32_t label = split_.label(example);
  ExampleStats& facts = stats_.examples.emplace_back();
  facts.label = label;
  const bool are_letters = settings_.input == InputKind::kText;
  facts.content = content_hash(split_, example, settings_.num_towers,
                               are_letters ? Equality::kLetters : Equality::kTokens);
  values_.resize(stats_.channels.size());
  for (std::vector<double>& channel : values_) channel.clear();
  int64_t all_tokens = 0;
  bool any_empty = false, all_constant = true;
  for (int64_t tower = 0; tower < settings_.num_towers; ++tower) {
    const int64_t length = split_.sequence_length(example, tower);
    words_.resize(static_cast<size_t>(length) * num_channels_);
    split_.read_tokens(example, tower, words_);
    all_tokens += length;
    ++stats_.num_sequences;
    stats_.shortest = std::min(stats_.shortest, length);
    stats_.longest = std::max(stats_.longest, length);
    stats_.num_cut += std::max<int64_t>(0, length - settings_.length);
    any_empty |= are_letters ? is_white_space(split_.stored_bytes(example, tower)) : length == 0;
    all_constant &= is_constant();
    add_ends();
    if (are_letters) add_text(example, tower, label);
    if (!values_.empty()) add_numbers();
  }
  for (size_t c = 0; c < values_.size(); ++c) stats_.channels[c].add_example(values_[c]);
  if (!values_.empty()) add_axes();
  ++stats_.classes[static_cast<size_t>(label)];
  facts.is_long = all_tokens >= (are_letters ? kFewestLetters : kFewestTokens);
  stats_.lengths.add(static_cast<double>(all_tokens));
  stats_.num_positions += all_tokens;
  stats_.num_empty += any_empty;
  stats_.num_constant += all_constant;
}

template <typename Map>
void add_counts(const Map& from, Map& to) {
  for (const auto& [key, count] : from) to[key] += count;
}

void merge(SplitStats&& from, SplitStats& to) {
  if (to.examples.empty()) {
    to = std::move(from);
    return;
  }
  to.examples.insert(to.examples.end(), from.examples.begin(), from.examples.end());
  for (size_t c = 0; c < to.classes.size(); ++c) to.classes[c] += from.classes[c];
  for (size_t c = 0; c < to.channels.size(); ++c) to.channels[c].merge(from.channels[c]);
  for (size_t c = 0; c < to.texts.size(); ++c) {
    for (size_t t = 0; t < kNumTextTraits; ++t) to.texts[c][t] += from.texts[c][t];
  }
  to.lengths.merge(from.lengths);
  to.axes.positions += from.axes.positions;
  to.axes.channels += from.axes.channels;
  to.axes.far_channels += from.axes.far_channels;
  to.axes.count += from.axes.count;
  add_counts(from.first, to.first);
  add_counts(from.last, to.last);
  add_counts(from.begins, to.begins);
  add_counts(from.ends, to.ends);
  to.num_sequences += from.num_sequences;
  to.shortest = std::min(to.shortest, from.shortest);
  to.longest = std::max(to.longest, from.longest);
  to.num_positions += from.num_positions;
  to.num_cut += from.num_cut;
  to.num_empty += from.num_empty;
  to.num_constant += from.num_constant;
}

// Counts by id, which may be millions: once for all threads.
std::vector<IdStats> id_stats(const Split& split, int64_t num_towers) {
  std::vector<IdStats> ids;
  std::vector<int32_t> words;
  for (int64_t i = 0; i < split.size() * num_towers; ++i) {
    const int64_t example = i / num_towers, tower = i % num_towers;
    words.resize(static_cast<size_t>(split.sequence_length(example, tower)));
    split.read_tokens(example, tower, words);
    for (const int32_t word : words) {
      const auto id = static_cast<size_t>(word);
      if (id >= ids.size()) ids.resize(id + 1);
      IdStats& of = ids[id];
      ++of.count;
      of.example = of.count == 1 || of.example == example ? example : IdStats::kSeveral;
    }
  }
  return ids;
}

}  // namespace

void Spread::merge(const Spread& other) {
  if (other.count == 0) return;
  const double all = count + other.count, apart = other.mean - mean;
  squares += other.squares + apart * apart * count * other.count / all;
  mean += apart * other.count / all;
  count = all;
}

void LeastValue::add(double x, int64_t times) {
  if (x > next) return;
  if (x < value) {
    next = value;
    value = x;
    count = times;
  } else if (x == value) {
    count += times;
  } else {
    next = x;
  }
}

void LeastValue::merge(const LeastValue& other) {
  if (other.count == 0) return;
  add(other.value, other.count);
  add(other.next, 0);
}

void ChannelStats::add_example(const std::vector<double>& values) {
  if (values.empty()) return;
  double sum = 0, squared = 0;
  for (const double x : values) {
    sum += x;
    lowest.add(x);
    highest.add(-x);
  }
  const auto size = static_cast<double>(values.size());
  const double mean = sum / size;
  for (const double x : values) squared += (x - mean) * (x - mean);
  means.add(mean);
  deviations.add(std::sqrt(squared / size));
  count += static_cast<int64_t>(values.size());
}

void ChannelStats::merge(const ChannelStats& other) {
  means.merge(other.means);
  deviations.merge(other.deviations);
  lowest.merge(other.lowest);
  highest.merge(other.highest);
  count += other.count;
}

SplitStats split_stats(const Dataset& dataset, const std::string& name,
                       const StatsSettings& settings) {
  constexpr int64_t kBlock = 256;  // examples; fixed, so that sums do not depend on threads
  const Split split = dataset.split(name);
  std::vector<SplitStats> blocks(static_cast<size_t>((split.size() + kBlock - 1) / kBlock));
  parallel_for_each(static_cast<int64_t>(blocks.size()), [&](int64_t block) {
    throw_if_stopped();
    Pass pass(split, settings);
    const int64_t end = std::min(split.size(), (block + 1) * kBlock);
    for (int64_t i = block * kBlock; i < end; ++i) pass.add(i);
    blocks[static_cast<size_t>(block)] = pass.take();
  });
  SplitStats stats = Pass(split, settings).take();
  for (SplitStats& block : blocks) merge(std::move(block), stats);
  stats.name = name;
  for (const ShardInfo& shard : dataset.manifest().splits.at(name)) {
    if (shard.num_examples > 0) stats.files.push_back(shard.xxh3);
  }
  if (settings.input == InputKind::kTokens) stats.ids = id_stats(split, settings.num_towers);
  return stats;
}

SplitStats length_stats(const Dataset& dataset, const std::string& name,
                        const StatsSettings& settings) {
  const Split split = dataset.split(name);
  SplitStats stats;
  stats.name = name;
  for (int64_t i = 0; i < split.size() * settings.num_towers; ++i) {
    const int64_t length = split.sequence_length(i / settings.num_towers, i % settings.num_towers);
    stats.longest = std::max(stats.longest, length);
    stats.num_positions += length;
    stats.num_cut += std::max<int64_t>(0, length - settings.length);
  }
  return stats;
}

void relate(std::vector<SplitStats>& splits) {
  struct Seen {
    size_t split;
    int32_t label;
    bool has_two_labels = false;
  };
  const auto hash = [](const Hash128& content) { return static_cast<size_t>(content.low); };
  std::unordered_map<Hash128, Seen, decltype(hash)> seen(1024, hash);
  std::map<std::string, std::string> split_of_file;
  for (size_t s = 0; s < splits.size(); ++s) {
    for (const std::string& file : splits[s].files) {
      const auto [known, is_new] = split_of_file.emplace(file, splits[s].name);
      if (!is_new) splits[s].same_file_as = known->second;
    }
    for (const ExampleStats& example : splits[s].examples) {
      if (!example.is_long) continue;
      const auto [known, is_new] = seen.try_emplace(example.content, Seen{s, example.label});
      known->second.has_two_labels |= known->second.label != example.label;
      if (is_new) continue;
      ++(known->second.split == s ? splits[s].num_repeats : splits[s].num_copies);
    }
  }
  for (SplitStats& split : splits) {
    for (const ExampleStats& example : split.examples) {
      const auto known = seen.find(example.content);
      split.num_contradictions += known != seen.end() && known->second.has_two_labels;
    }
  }
}

}  // namespace lra::checks
