#include "tasks/custom/name_baseline.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/parallel.h"

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

using ClassOfWord = std::map<std::string, int32_t>;

ClassOfWord class_of_word(const std::vector<std::string>& names) {
  ClassOfWord found;
  for (size_t label = 0; label < names.size(); ++label) {
    std::vector<std::string> words;
    const std::string& name = names[label];
    visit_words({reinterpret_cast<const uint8_t*>(name.data()), name.size()},
                [&](const std::string& word) { words.push_back(word); });
    if (words.size() == 1) found.emplace(words[0], static_cast<int32_t>(label));
  }
  return found;
}

// The only class that an example names.
std::optional<int32_t> named_class(const Split& split, int64_t example, int64_t num_towers,
                                   const ClassOfWord& classes) {
  std::set<int32_t> named;
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    visit_words(split.stored_bytes(example, tower), [&](const std::string& word) {
      const auto found = classes.find(word);
      if (found != classes.end()) named.insert(found->second);
    });
  }
  return named.size() == 1 ? std::optional(*named.begin()) : std::nullopt;
}

int32_t most_frequent(const Split& train, size_t num_classes) {
  std::vector<int64_t> counts(num_classes);
  for (int64_t i = 0; i < train.size(); ++i) ++counts.at(static_cast<size_t>(train.label(i)));
  return static_cast<int32_t>(std::ranges::max_element(counts) - counts.begin());
}

}  // namespace

Baseline name_baseline(const Split& train, const Split& test, const std::vector<std::string>& names,
                       int64_t num_towers) {
  Baseline result{.name = "name of the class", .accuracy = 0};
  if (train.size() == 0 || test.size() == 0) return result;
  const ClassOfWord classes = class_of_word(names);
  const int32_t usual = most_frequent(train, names.size());
  std::vector<uint8_t> is_right(static_cast<size_t>(test.size()));
  parallel_ranges(test.size(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      is_right[static_cast<size_t>(i)] =
          named_class(test, i, num_towers, classes).value_or(usual) == test.label(i);
    }
  });
  result.accuracy =
      static_cast<double>(std::ranges::count(is_right, 1)) / static_cast<double>(test.size());
  return result;
}

}  // namespace lra::tasks
