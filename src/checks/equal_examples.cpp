#include "checks/equal_examples.h"

#include <algorithm>

#include "base/hash.h"
#include "base/parallel.h"
#include "data/first_seen.h"

namespace lra::checks {
namespace {

// Bytes from 128 on are parts of letters of other alphabets.
std::vector<uint8_t> letters_of(std::span<const uint8_t> text) {
  constexpr size_t kMaxTagBytes = 32;  // a '<' alone is no tag
  std::vector<uint8_t> letters;
  letters.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t c = text[i];
    if (c == '<') {
      const auto rest = text.subspan(i, std::min(kMaxTagBytes, text.size() - i));
      const auto end = std::ranges::find(rest, '>');
      if (end != rest.end()) i += static_cast<size_t>(end - rest.begin());
    } else if (c >= 'A' && c <= 'Z') {
      letters.push_back(static_cast<uint8_t>(c - 'A' + 'a'));
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 128) {
      letters.push_back(c);
    }
  }
  if (letters.empty()) letters.assign(text.begin(), text.end());
  return letters;
}

Hash128 sequence_hash(const Split& split, int64_t example, int64_t tower, Equality equality) {
  if (equality == Equality::kLetters) {
    const std::vector<uint8_t> letters = letters_of(split.stored_bytes(example, tower));
    return hash128(std::as_bytes(std::span(letters)));
  }
  std::vector<int32_t> tokens(
      static_cast<size_t>(split.sequence_length(example, tower) * split.words_per_token()));
  split.read_tokens(example, tower, tokens);
  return hash128(std::as_bytes(std::span(tokens)));
}

// One hash per example.
std::vector<Hash128> example_hashes(const Split& split, int64_t num_towers) {
  std::vector<Hash128> hashes(static_cast<size_t>(split.size()));
  parallel_ranges(split.size(), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      hashes[static_cast<size_t>(i)] = content_hash(split, i, num_towers, Equality::kTokens);
    }
  });
  return hashes;
}

}  // namespace

Hash128 content_hash(const Split& split, int64_t example, int64_t num_towers, Equality equality) {
  std::vector<Hash128> towers;
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    towers.push_back(sequence_hash(split, example, tower, equality));
  }
  if (num_towers == 1) return towers[0];
  std::ranges::sort(towers);
  return hash128(std::as_bytes(std::span(towers)));
}

EqualExamples equal_examples(const Dataset& dataset) {
  EqualExamples equal;
  FirstSeen seen;
  for (const char* name : {"train", "val", "test"}) {
    if (!dataset.has(name)) continue;
    const auto begin = static_cast<int64_t>(equal.first.size());
    const int64_t num_towers = dataset.manifest().num_towers;
    for (const Hash128& hash : example_hashes(dataset.split(name), num_towers)) {
      const auto number = static_cast<int64_t>(equal.first.size());
      equal.first.push_back(seen.add(hash, number).value_or(number));
    }
    equal.splits.push_back({name, begin, static_cast<int64_t>(equal.first.size())});
  }
  return equal;
}

int64_t count_equal(const Split& split, const Split& other, int64_t num_towers) {
  auto known = example_hashes(other, num_towers);
  std::ranges::sort(known);
  const auto hashes = example_hashes(split, num_towers);
  return std::ranges::count_if(
      hashes, [&](const Hash128& hash) { return std::ranges::binary_search(known, hash); });
}

}  // namespace lra::checks
