#include "tasks/text_checks.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <span>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "base/utf8.h"
#include "data/first_seen.h"
#include "tasks/own/custom.h"
#include "tasks/split_checks.h"
#include "tasks/text_passages.h"

namespace lra::tasks {
namespace {

bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Bytes from 128 on are parts of letters of other alphabets.
bool is_letter(uint8_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128; }

bool is_capital(uint8_t c) { return c >= 'A' && c <= 'Z'; }

// `stored` is a text, of bytes, or an image. A single symbol may be all that there is to an
// example.
bool is_blank(std::span<const uint8_t> stored, bool as_text) {
  if (as_text) return std::ranges::all_of(stored, is_space);
  const auto is_first = [&](uint8_t value) { return value == stored[0]; };
  return stored.size() != 1 && std::ranges::all_of(stored, is_first);
}

// Trait of how a text was written, apart from its content.
struct Trait {
  const char* name;  // of texts
  bool (*has)(std::span<const uint8_t> text);
};
constexpr std::array kTraits = {
    Trait{"begin with white space",
          [](std::span<const uint8_t> text) { return !text.empty() && is_space(text.front()); }},
    Trait{"end in white space",
          [](std::span<const uint8_t> text) { return !text.empty() && is_space(text.back()); }},
    Trait{"hold a line end",
          [](std::span<const uint8_t> text) { return std::ranges::count(text, '\n') > 0; }},
    Trait{"hold a tab",
          [](std::span<const uint8_t> text) { return std::ranges::count(text, '\t') > 0; }}};

// Texts of one class in one split.
struct TextGroup {
  int64_t num_texts = 0;
  std::array<int64_t, kTraits.size()> num_with{};
};

std::map<std::string, TextGroup> text_groups(const Dataset& dataset) {
  std::map<std::string, TextGroup> groups;
  for (const auto& [name, unused] : dataset.manifest().splits) {
    const Split split = dataset.split(name);
    for (int64_t i = 0; i < split.size(); ++i) {
      TextGroup& group = groups["class " + std::to_string(split.label(i)) + " of " + name];
      for (int64_t tower = 0; tower < dataset.manifest().num_towers; ++tower) {
        ++group.num_texts;
        for (size_t t = 0; t < kTraits.size(); ++t) {
          group.num_with[t] += kTraits[t].has(split.stored_bytes(i, tower));
        }
      }
    }
  }
  return groups;
}

// A trait of only one class tells a model the label; a trait of only one split makes its examples
// different from the others.
void refuse_texts_written_unlike(const Dataset& dataset) {
  constexpr double kMostApart = 0.25;  // of real classes and splits 0.04 at most
  const auto groups = text_groups(dataset);
  for (size_t t = 0; t < kTraits.size(); ++t) {
    std::map<double, std::string> shares;
    for (const auto& [name, group] : groups) {
      if (group.num_texts < kFewestToJudge / 2) continue;
      shares[static_cast<double>(group.num_with[t]) / static_cast<double>(group.num_texts)] = name;
    }
    if (shares.empty() || shares.rbegin()->first - shares.begin()->first <= kMostApart) continue;
    const auto share = [](const auto& s) { return percent(s.first) + " of " + s.second; };
    throw Error({.where = dataset.folder(),
                 .what = std::string("texts that ") + kTraits[t].name + ": " +
                         share(*shares.rbegin()) + ", " + share(*shares.begin()),
                 .expected = "texts of all classes and splits in the same format",
                 .advice = "write all files in the same way, or rewrite none"});
  }
}

// The different texts of a split, of every tower.
struct DistinctTexts {
  std::vector<int64_t> lengths, characters;
  std::vector<double> blank_shares, letter_shares;  // of those that are not empty
  bool any_capital = false;
  std::map<std::string, int64_t> beginnings;
};

constexpr size_t kBeginningBytes = 20;

DistinctTexts distinct_texts(const Split& split, int64_t num_towers) {
  DistinctTexts texts;
  FirstSeen seen;
  for (int64_t i = 0; i < split.size(); ++i) {
    for (int64_t tower = 0; tower < num_towers; ++tower) {
      const std::span<const uint8_t> text = split.stored_bytes(i, tower);
      if (seen.add(hash128(std::as_bytes(text)), i)) continue;
      texts.lengths.push_back(static_cast<int64_t>(text.size()));
      texts.characters.push_back(std::ranges::count_if(text, begins_character));
      if (text.empty()) continue;
      const auto share_of = [&](bool (*is_one)(uint8_t)) {
        return static_cast<double>(std::ranges::count_if(text, is_one)) /
               static_cast<double>(text.size());
      };
      texts.blank_shares.push_back(share_of(is_space));
      texts.letter_shares.push_back(share_of(is_letter));
      texts.any_capital = texts.any_capital || std::ranges::any_of(text, is_capital);
      if (text.size() < kBeginningBytes) continue;
      ++texts.beginnings[std::string(text.begin(), text.begin() + kBeginningBytes)];
    }
  }
  return texts;
}

template <typename T>
T median(std::vector<T> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// A sentence if over `most` of the texts have one length: they were cut, or padded, before they
// came here. Of IMDb's reviews 0.2 % have the commonest. Pairs are cut by whoever makes them.
void doubt_equal_lengths(const std::string& name, const DistinctTexts& texts, double most,
                         std::vector<std::string>& doubts) {
  constexpr int64_t kShortestCut = 100;
  for (const auto& [lengths, unit] :
       {std::pair(&texts.lengths, " bytes"), std::pair(&texts.characters, " characters")}) {
    std::map<int64_t, int64_t> counts;
    for (const int64_t length : *lengths) counts[length] += length >= kShortestCut;
    const auto [length, number] =
        *std::ranges::max_element(counts, {}, &std::pair<const int64_t, int64_t>::second);
    const auto count = static_cast<int64_t>(lengths->size());
    if (number < kFewestToJudge || static_cast<double>(number) <= most * static_cast<double>(count))
      continue;
    doubts.push_back(thousands(number) + " of the " + thousands(count) + " different texts of " +
                     name + " have exactly " + thousands(length) + unit + ": were they cut?");
    return;
  }
}

// A sentence if over `most` of the texts begin alike: error pages, prompts.
void doubt_equal_beginnings(const std::string& name, const DistinctTexts& texts, double most,
                            std::vector<std::string>& doubts) {
  const auto count = static_cast<int64_t>(texts.lengths.size());
  if (count < kFewestToJudge) return;
  for (const auto& [beginning, number] : texts.beginnings) {
    if (static_cast<double>(number) <= most * static_cast<double>(count)) continue;
    doubts.push_back(thousands(number) + " of the " + thousands(count) + " different texts of " +
                     name + " begin with " + in_quotes(beginning));
    return;
  }
}

// English has a blank for every six bytes; 1.3 % of base64 are line ends.
constexpr double kLeastBlank = 0.03;

// Four bytes of five are letters in English.
void doubt_what_is_no_text(const Dataset& dataset, std::vector<std::string>& doubts) {
  constexpr int64_t kShortMedian = 20;
  constexpr double kLeastLetters = 0.3, kMostAlike = 0.1, kMostOfLength = 0.05;
  for (const auto& [name, unused] : dataset.manifest().splits) {
    const DistinctTexts texts = distinct_texts(dataset.split(name), dataset.manifest().num_towers);
    const auto count = static_cast<int64_t>(texts.lengths.size());
    if (count < kFewestToJudge) continue;
    const int64_t length = median(texts.lengths);
    if (length < kShortMedian) {
      doubts.push_back("texts of " + name + " are very short: half of them have at most " +
                       std::to_string(length) + " bytes");
    }
    if (median(texts.blank_shares) < kLeastBlank) {
      doubts.push_back("texts of " + name + " have hardly any white space: are they encoded, or " +
                       "names of something?");
    }
    if (median(texts.letter_shares) < kLeastLetters) {
      doubts.push_back("texts of " + name + " have hardly any letters: are they ids of words?");
    }
    if (!texts.any_capital && median(texts.letter_shares) >= kLeastLetters) {
      doubts.push_back("texts of " + name + " have no capital letter: were they cleaned?");
    }
    if (dataset.manifest().num_towers == 1) doubt_equal_lengths(name, texts, kMostOfLength, doubts);
    doubt_equal_beginnings(name, texts, kMostAlike, doubts);
  }
}

// Sign that texts of own data went through another program on their way.
struct Trace {
  const char* what;  // after "90 % of the texts of train "
  double most;       // share of the texts
  bool (*has)(std::string_view text);
};
bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
constexpr std::array kTraces = {
    Trace{"are written as Python writes bytes (b'...'): were they decoded?", 0.5,
          [](std::string_view text) {
            return text.size() > 2 && text[0] == 'b' && (text[1] == '\'' || text[1] == '"') &&
                   text.back() == text[1];
          }},
    Trace{"end in '...': were they cut?", 0.5,
          [](std::string_view text) { return text.ends_with("...") || text.ends_with("\u2026"); }},
    Trace{"hold characters that could not be decoded (U+FFFD)", 0.2,
          [](std::string_view text) { return holds(text, "\uFFFD"); }},
    Trace{"hold marks of padding ([PAD], <pad>): leave them out", 0.2,
          [](std::string_view text) { return holds(text, "[PAD]") || holds(text, "<pad>"); }},
    Trace{"have the form of base64: were they decoded?", 0.9,
          [](std::string_view text) {
            const std::string_view content = text.substr(0, text.find_last_not_of('=') + 1);
            const auto any = [&](auto is) { return std::ranges::any_of(content, is); };
            return text.size() >= 40 && text.size() % 4 == 0 &&
                   content.find_first_not_of(
                       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") ==
                       content.npos &&
                   any([](char c) { return c >= 'a' && c <= 'z'; }) &&
                   any([](char c) { return c >= 'A' && c <= 'Z'; }) &&
                   any([](char c) { return c >= '0' && c <= '9'; });
          }},
    Trace{"are numbers: are they ids of words, and their column one of tokens?", 0.9,
          [](std::string_view text) {
            return text.find_first_not_of("0123456789 ,;.\t[]") == text.npos;
          }}};

}  // namespace

void doubt_own_texts(const Dataset& dataset, std::vector<std::string>& doubts) {
  constexpr double kMostAlike = 0.5, kMostOfLength = 0.2;
  for (const auto& [name, unused] : dataset.manifest().splits) {
    const Split split = dataset.split(name);
    const int64_t towers = dataset.manifest().num_towers;
    const auto count = static_cast<double>(split.size() * towers);
    if (split.size() < kFewestToJudge) continue;
    std::array<int64_t, kTraces.size()> found{};
    for (int64_t i = 0; i < split.size() * towers; ++i) {
      const auto bytes = split.stored_bytes(i / towers, i % towers);
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      for (size_t t = 0; t < kTraces.size(); ++t) found[t] += kTraces[t].has(text);
    }
    for (size_t t = 0; t < kTraces.size(); ++t) {
      const double share = static_cast<double>(found[t]) / count;
      if (share < kTraces[t].most) continue;
      doubts.push_back(percent(share, 0) + " of the texts of " + name + " " + kTraces[t].what);
    }
    const DistinctTexts texts = distinct_texts(split, towers);
    doubt_equal_beginnings(name, texts, kMostAlike, doubts);
    // Without white space, such as windows of DNA, they may have one length.
    if (towers == 1 && !texts.blank_shares.empty() && median(texts.blank_shares) >= kLeastBlank)
      doubt_equal_lengths(name, texts, kMostOfLength, doubts);
  }
  std::ranges::move(doubts_of_passages(dataset), std::back_inserter(doubts));
}

bool is_text(const Manifest& manifest) {
  return manifest.token_bytes == 1 && manifest.token_offset == 1 && !is_own(manifest);
}

int64_t count_blank(const Split& split, const Manifest& manifest) {
  if (manifest.token_bytes != 1 || is_own(manifest)) return 0;
  int64_t num_blank = 0;
  for (int64_t i = 0; i < split.size(); ++i) {
    bool has_blank = false;
    for (int64_t tower = 0; tower < manifest.num_towers; ++tower) {
      has_blank = has_blank || is_blank(split.stored_bytes(i, tower), is_text(manifest));
    }
    num_blank += has_blank;
  }
  return num_blank;
}

void judge_texts(const Dataset& dataset, std::vector<std::string>& doubts) {
  refuse_texts_written_unlike(dataset);
  doubt_what_is_no_text(dataset, doubts);
  std::ranges::move(doubts_of_passages(dataset), std::back_inserter(doubts));
}

}  // namespace lra::tasks
