#include "tasks/own/word_baseline.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/parallel.h"
#include "checks/facts.h"
#include "data/drawn_examples.h"

namespace lra::tasks {
namespace {

// Runs of letters, digits and bytes above ASCII, in small letters.
void visit_words(std::span<const uint8_t> text,
                 const std::function<void(const std::string&)>& act) {
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    const uint8_t c = i < text.size() ? text[i] : ' ';
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80) {
      word += static_cast<char>(is_upper ? c - 'A' + 'a' : c);
    } else if (!word.empty()) {
      act(word);
      word.clear();
    }
  }
}

void visit_words(const Split& split, int64_t example, int64_t num_towers,
                 const std::function<void(const std::string&)>& act) {
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    visit_words(split.stored_bytes(example, tower), act);
  }
}

// The class that a word comes with, and how purely: rare words by chance, so they count less.
struct Telling {
  int32_t label = 0;
  double purity = 0;
};

using TellingWords = std::unordered_map<std::string, Telling>;

TellingWords telling_words(const Split& train, int64_t num_towers) {
  constexpr double kDoubtedExamples = 2;
  std::unordered_map<std::string, std::unordered_map<int32_t, int64_t>> counts;
  for (int64_t i = 0; i < train.size(); ++i) {
    std::unordered_set<std::string> words;  // of this example, once each
    visit_words(train, i, num_towers, [&](const std::string& word) { words.insert(word); });
    for (const std::string& word : words) ++counts[word][train.label(i)];
  }
  TellingWords found;
  for (const auto& [word, by_label] : counts) {
    int64_t all = 0, most = 0;
    Telling& telling = found[word];
    for (const auto& [label, count] : by_label) {
      all += count;
      if (count < most || (count == most && label > telling.label)) continue;
      most = count;
      telling.label = label;
    }
    telling.purity = static_cast<double>(most) / (static_cast<double>(all) + kDoubtedExamples);
  }
  return found;
}

}  // namespace

checks::Baseline word_baseline(const Split& train, const Split& test, int64_t num_classes,
                               int64_t num_towers) {
  constexpr int64_t kMostExamples = 10000;
  checks::Baseline result{.name = "most telling word", .accuracy = 0};
  if (train.size() == 0 || test.size() == 0) return result;
  const TellingWords words =
      telling_words(train.subset(drawn_examples(train.size(), kMostExamples)), num_towers);
  const int32_t usual = checks::most_frequent_label(train, num_classes);
  std::vector<uint8_t> is_right(static_cast<size_t>(test.size()));
  parallel_ranges(test.size(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Telling best{.label = usual, .purity = 0};
      visit_words(test, i, num_towers, [&](const std::string& word) {
        const auto found = words.find(word);
        if (found != words.end() && found->second.purity > best.purity) best = found->second;
      });
      is_right[static_cast<size_t>(i)] = best.label == test.label(i);
    }
  });
  result.accuracy =
      static_cast<double>(std::ranges::count(is_right, 1)) / static_cast<double>(test.size());
  return result;
}

}  // namespace lra::tasks
