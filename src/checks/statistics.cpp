#include "checks/statistics.h"

#include <algorithm>
#include <bit>
#include <span>

#include "base/parallel.h"
#include "checks/equal_examples.h"
#include "data/stopping.h"

namespace lra::checks {
namespace {

constexpr size_t kShortestRun = 8;
// Fewest numbers, or bytes of a folded text, of an example that does not equal another by chance.
constexpr int64_t kFewestNumbers = 16, kFewestBytes = 100;
constexpr double kFloatPrecision = 1e-7;

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
  Hash128 add_text(int64_t example, int64_t tower, int32_t label);
  void add_positions(int64_t example);
  void add_ids(int64_t example);
  bool add_runs();
  void add_numbers();
  void add_axes();

  const Split& split_;
  const StatsSettings& settings_;
  size_t num_channels_;
  SplitStats stats_;
  std::vector<int32_t> words_;  // of one sequence
  // Facts about one example.
  std::vector<std::vector<double>> values_;  // by channel
  int64_t num_tokens_ = 0, num_compared_ = 0;
  bool is_empty_ = false, is_varied_ = false;
};

double number_of(int32_t word, InputKind input) {
  return input == InputKind::kValues ? double{std::bit_cast<float>(word)} : double(word);
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The text in small letters, with one space for any white space, and none at the ends.
std::string folded(std::string_view text) {
  std::string folded;
  folded.reserve(text.size());
  for (const char c : text) {
    if (!is_space(c)) {
      folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!folded.empty() && folded.back() != ' ') {
      folded += ' ';
    }
  }
  if (!folded.empty() && folded.back() == ' ') folded.pop_back();
  return folded;
}

// Returns the hash of the folded text.
Hash128 Pass::add_text(int64_t example, int64_t tower, int32_t label) {
  const std::span<const uint8_t> bytes = split_.stored_bytes(example, tower);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t t = 0; t < kNumTextTraits; ++t) {
    stats_.texts[static_cast<size_t>(label)][t] += kTextTraits[t].has(text);
  }
  const std::string compared = folded(text);
  is_empty_ |= compared.empty();
  num_compared_ += static_cast<int64_t>(compared.size());
  return hash128(std::as_bytes(std::span(compared)));
}

void Pass::add_positions(int64_t example) {
  is_empty_ |= words_.empty();
  is_varied_ |= add_runs();
  num_compared_ += static_cast<int64_t>(words_.size());
  if (settings_.input == InputKind::kTokens && !words_.empty()) add_ids(example);
}

void Pass::add_ids(int64_t example) {
  ++stats_.first[words_.front()];
  ++stats_.last[words_.back()];
  for (const int32_t word : words_) {
    IdStats& id = stats_.ids[word];
    id.example = id.count == 0 || id.example == example ? example : IdStats::kSeveral;
    ++id.count;
  }
}

// False if the sequence is nothing but a run.
bool Pass::add_runs() {
  const size_t length = words_.size() / num_channels_;
  const auto position = [&](size_t i) {
    return std::span(words_).subspan(i * num_channels_, num_channels_);
  };
  const auto are_equal = [&](size_t i, size_t j) {
    return std::ranges::equal(position(i), position(j));
  };
  std::set<uint64_t> inside;
  bool starts_with_run = false;
  for (size_t begin = 0, end = 0; begin < length; begin = end) {
    for (end = begin + 1; end < length && are_equal(begin, end);) ++end;
    if (end - begin < kShortestRun) continue;
    const uint64_t hash = hash64(std::as_bytes(position(begin)));
    if (end - begin == length) {
      ++stats_.runs.whole[hash];
      return false;
    }
    inside.insert(hash);
    starts_with_run |= begin == 0;
    if (end < length || starts_with_run) continue;
    size_t first = 0;
    while (!are_equal(first, begin)) ++first;
    if (first == begin) ++stats_.runs.ends[hash];
  }
  for (const uint64_t hash : inside) ++stats_.runs.inside[hash];
  return true;
}

void Pass::add_numbers() {
  for (size_t at = 0; at < words_.size(); ++at) {
    values_[at % num_channels_].push_back(number_of(words_[at], settings_.input));
  }
}

// Means over the pairs of one example, so that each example counts alike.
void Pass::add_axes() {
  const size_t size = values_[0].size();
  if (num_channels_ < kFewestChannels || size < 2) return;
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

void Pass::add(int64_t example) {
  const int32_t label = split_.label(example);
  const bool are_texts = settings_.input == InputKind::kText;
  values_.resize(stats_.channels.size());
  for (std::vector<double>& channel : values_) channel.clear();
  num_tokens_ = num_compared_ = 0;
  is_empty_ = false;
  is_varied_ = are_texts;
  std::vector<Hash128> exact, compared;
  for (int64_t tower = 0; tower < settings_.num_towers; ++tower) {
    const int64_t length = split_.sequence_length(example, tower);
    words_.resize(static_cast<size_t>(length) * num_channels_);
    split_.read_tokens(example, tower, words_);
    exact.push_back(hash128(std::as_bytes(std::span(words_))));
    compared.push_back(are_texts ? add_text(example, tower, label) : exact.back());
    ++stats_.num_sequences;
    stats_.add_length(length, settings_.length);
    num_tokens_ += length;
    if (!are_texts) add_positions(example);
    if (!values_.empty()) add_numbers();
  }
  stats_.examples.push_back(
      {.exact = hash_of(exact),
       .folded = hash_of(compared),
       .label = label,
       .is_telling = is_varied_ && num_compared_ >= (are_texts ? kFewestBytes : kFewestNumbers)});
  for (size_t c = 0; c < values_.size(); ++c) stats_.channels[c].add_example(values_[c]);
  if (!values_.empty()) add_axes();
  ++stats_.classes[static_cast<size_t>(label)];
  stats_.lengths.add(static_cast<double>(num_tokens_));
  stats_.num_empty += is_empty_;
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
  for (const auto& [id, stats] : from.ids) to.ids[id].merge(stats);
  add_counts(from.first, to.first);
  add_counts(from.last, to.last);
  add_counts(from.runs.whole, to.runs.whole);
  add_counts(from.runs.inside, to.runs.inside);
  add_counts(from.runs.ends, to.runs.ends);
  to.num_sequences += from.num_sequences;
  to.shortest = std::min(to.shortest, from.shortest);
  to.longest = std::max(to.longest, from.longest);
  to.num_positions += from.num_positions;
  to.num_cut += from.num_cut;
  to.num_empty += from.num_empty;
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
    if (has_few_values()) different.insert(x);
  }
  const auto size = static_cast<double>(values.size());
  const double mean = sum / size;
  for (const double x : values) squared += (x - mean) * (x - mean);
  means.add(mean);
  variances += squared / size;
  // Rounding of a constant is below the precision of its floats.
  const double deviation = std::sqrt(squared / size);
  if (deviation > kFloatPrecision * std::abs(mean)) log_deviations.add(std::log(deviation));
  count += static_cast<int64_t>(values.size());
}

void ChannelStats::merge(const ChannelStats& other) {
  means.merge(other.means);
  log_deviations.merge(other.log_deviations);
  variances += other.variances;
  lowest.merge(other.lowest);
  highest.merge(other.highest);
  count += other.count;
  for (const double x : other.different) {
    if (has_few_values()) different.insert(x);
  }
}

void IdStats::merge(const IdStats& other) {
  example = count == 0 ? other.example : kSeveral;
  count += other.count;
}

SplitStats split_stats(const Dataset& dataset, const std::string& name,
                       const StatsSettings& settings) {
  constexpr int64_t kBlock = 256;  // examples; fixed, so that sums do not depend on threads
  const Split split = dataset.split(name);
  constexpr int64_t kMostBlocks = 64;  // in memory
  SplitStats stats = Pass(split, settings).take();
  for (int64_t first = 0; first < split.size(); first += kMostBlocks * kBlock) {
    std::vector<SplitStats> blocks(kMostBlocks);
    parallel_for_each(kMostBlocks, [&](int64_t block) {
      throw_if_stopped();
      Pass pass(split, settings);
      const int64_t begin = first + block * kBlock, end = std::min(split.size(), begin + kBlock);
      for (int64_t i = begin; i < end; ++i) pass.add(i);
      split.release(begin, end);
      blocks[static_cast<size_t>(block)] = pass.take();
    });
    for (SplitStats& block : blocks) merge(std::move(block), stats);
  }
  stats.name = name;
  for (const ShardInfo& shard : dataset.manifest().splits.at(name)) {
    if (shard.num_examples > 0) stats.files.push_back(shard.xxh3);
  }
  return stats;
}

SplitStats length_stats(const Dataset& dataset, const std::string& name,
                        const StatsSettings& settings) {
  const Split split = dataset.split(name);
  SplitStats stats;
  stats.name = name;
  for (int64_t i = 0; i < split.size() * settings.num_towers; ++i) {
    stats.add_length(split.sequence_length(i / settings.num_towers, i % settings.num_towers),
                     settings.length);
  }
  return stats;
}

void relate(std::vector<SplitStats>& splits) {
  constexpr int32_t kTwoLabels = -1;
  const auto hash = [](const Hash128& content) { return static_cast<size_t>(content.low); };
  std::unordered_map<Hash128, int32_t, decltype(hash)> label_of(1024, hash);  // by exact
  std::unordered_map<Hash128, size_t, decltype(hash)> split_of(1024, hash);   // by folded
  std::unordered_map<std::string, std::string> split_of_file;
  for (size_t s = 0; s < splits.size(); ++s) {
    for (const std::string& file : splits[s].files) {
      const auto [known, is_new] = split_of_file.emplace(file, splits[s].name);
      if (!is_new) splits[s].same_file_as = known->second;
    }
    for (ExampleStats& example : splits[s].examples) {
      if (!example.is_telling) continue;
      const auto [label, unused] = label_of.emplace(example.exact, example.label);
      if (label->second != example.label) label->second = kTwoLabels;
      const auto [split, is_new] = split_of.emplace(example.folded, s);
      example.is_copy = split->second != s;
      splits[s].num_copies += example.is_copy;
      splits[s].num_repeats += !is_new && !example.is_copy;
    }
  }
  for (SplitStats& split : splits) {
    split.num_contradictions = std::ranges::count_if(split.examples, [&](const auto& example) {
      return example.is_telling && label_of.at(example.exact) == kTwoLabels;
    });
  }
}

}  // namespace lra::checks
