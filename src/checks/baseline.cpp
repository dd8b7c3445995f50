#include "checks/baseline.h"

#include <algorithm>
#include <numeric>

#include "base/parallel.h"

namespace lra::checks {
namespace {

int64_t brightness_of(const Split& split, int64_t example) {
  const std::span<const uint8_t> pixels = split.stored_bytes(example);
  return std::accumulate(pixels.begin(), pixels.end(), int64_t{0});
}

}  // namespace

double share_right(const Split& test, const std::function<int32_t(int64_t example)>& predict) {
  if (test.size() == 0) return 0;
  const auto is_right = parallel_map(
      test.size(), 16, [&](int64_t i) -> uint8_t { return predict(i) == test.label(i); });
  return static_cast<double>(std::ranges::count(is_right, 1)) / static_cast<double>(test.size());
}

std::vector<int64_t> label_counts(const Split& split, int64_t num_classes) {
  std::vector<int64_t> counts(static_cast<size_t>(num_classes));
  for (int64_t i = 0; i < split.size(); ++i) {
    const int32_t label = split.label(i);
    if (label < num_classes) ++counts[static_cast<size_t>(label)];
  }
  return counts;
}

int32_t most_frequent_label(const Split& train, int64_t num_classes) {
  const std::vector<int64_t> counts = label_counts(train, num_classes);
  return static_cast<int32_t>(std::ranges::max_element(counts) - counts.begin());
}

Baseline majority_baseline(const Split& train, const Split& test, int64_t num_classes) {
  const int32_t best = most_frequent_label(train, num_classes);
  return {.name = "majority", .accuracy = share_right(test, [&](int64_t) { return best; })};
}

Baseline brightness_baseline(const Split& train, const Split& test) {
  std::vector<std::pair<int64_t, int32_t>> values;
  for (int64_t i = 0; i < train.size(); ++i) {
    values.emplace_back(brightness_of(train, i), train.label(i));
  }
  std::sort(values.begin(), values.end());
  // The threshold that is best on train: label 1 from there on, or below it.
  int64_t right = std::count_if(values.begin(), values.end(), [](auto v) { return v.second == 1; });
  const auto size = static_cast<int64_t>(values.size());
  int64_t best = right, threshold = 0;
  bool above = true;
  if (size - right > best) above = false, best = size - right;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [value, label] = values[i];
    right += label == 1 ? -1 : 1;
    if (i + 1 < values.size() && values[i + 1].first == value) continue;  // no threshold between
    for (const bool side : {true, false}) {
      const int64_t count = side ? right : size - right;
      if (count > best) best = count, threshold = value + 1, above = side;
    }
  }
  const auto predict = [&](int64_t i) {
    return static_cast<int32_t>((brightness_of(test, i) >= threshold) == above);
  };
  return {.name = "brightness", .accuracy = share_right(test, predict)};
}

}  // namespace lra::checks
