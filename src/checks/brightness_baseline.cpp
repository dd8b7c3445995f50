#include "checks/brightness_baseline.h"

#include <algorithm>

namespace lra::checks {
namespace {

// Sum of the pixels of every image, with its label.
std::vector<std::pair<int64_t, int32_t>> brightness_of(const Split& split) {
  std::vector<std::pair<int64_t, int32_t>> values;
  for (int64_t i = 0; i < split.size(); ++i) {
    int64_t sum = 0;
    for (const uint8_t pixel : split.stored_bytes(i)) sum += pixel;
    values.emplace_back(sum, split.label(i));
  }
  return values;
}

}  // namespace

Baseline brightness_baseline(const Split& train, const Split& test) {
  std::vector<std::pair<int64_t, int32_t>> values = brightness_of(train);
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
  int64_t num_right = 0;
  for (const auto& [value, label] : brightness_of(test)) {
    num_right += ((value >= threshold) == above) == (label == 1);
  }
  const auto num_test = static_cast<double>(std::max<int64_t>(1, test.size()));
  return {.name = "brightness", .accuracy = static_cast<double>(num_right) / num_test};
}

}  // namespace lra::checks
