#include "tasks/custom/equal_values.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "base/parallel.h"

namespace lra::tasks {
namespace {

using Values = std::vector<double>;

// Rounding of float32 in deviations from the mean, with room for a mean that is far from 0.
double rounding_of(double value) { return 1e-5 * (1 + std::abs(value)); }

bool are_equal(const Values& a, const Values& b) {
  return std::ranges::equal(a, b,
                            [](double x, double y) { return std::abs(x - y) <= rounding_of(x); });
}

// The values of an example, of all sequences in turn, in the unit in which `unit` stores values.
Values values_in(const Scaling& unit, const ScaledSplit& from, int64_t example,
                 int64_t num_towers) {
  Values values;
  std::vector<int32_t> words;
  const auto num_channels = static_cast<size_t>(from.split.words_per_token());
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    words.resize(static_cast<size_t>(from.split.sequence_length(example, tower)) * num_channels);
    from.split.read_tokens(example, tower, words);
    for (size_t at = 0; at < words.size(); ++at) {
      const size_t c = at % num_channels;
      const double value = from.scaling.original(std::bit_cast<float>(words[at]), c);
      values.push_back((value - unit.original(0, c)) / unit.deviation(c));
    }
  }
  return values;
}

// A number that differs between examples, even between those that were standardized one by one.
double key_of(const Values& values) {
  double key = 0;
  for (size_t at = 0; at < values.size(); ++at) {
    key += values[at] * std::cos(static_cast<double>(at));
  }
  return values.empty() ? 0 : key / static_cast<double>(values.size());
}

// The farthest that the key of an example equal to this one may be from its own.
double rounding_of_key(const Values& values) {
  double rounding = 0;
  for (const double value : values) rounding += rounding_of(value);
  return values.empty() ? 0 : rounding / static_cast<double>(values.size());
}

}  // namespace

int64_t count_equal_values(const ScaledSplit& split, const ScaledSplit& other, int64_t num_towers) {
  if (split.split.words_per_token() != other.split.words_per_token()) return 0;
  const Scaling& unit = split.scaling.means.empty() ? other.scaling : split.scaling;
  constexpr int64_t kBlock = 64;
  std::vector<std::pair<double, int64_t>> known(static_cast<size_t>(other.split.size()));
  parallel_ranges(other.split.size(), kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      known[static_cast<size_t>(i)] = {key_of(values_in(unit, other, i, num_towers)), i};
    }
  });
  std::ranges::sort(known);
  std::atomic<int64_t> count = 0;
  parallel_ranges(split.split.size(), kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Values values = values_in(unit, split, i, num_towers);
      const double key = key_of(values), rounding = rounding_of_key(values);
      auto candidate = std::ranges::lower_bound(known, std::pair{key - rounding, int64_t{-1}});
      for (; candidate != known.end() && candidate->first <= key + rounding; ++candidate) {
        if (!are_equal(values, values_in(unit, other, candidate->second, num_towers))) continue;
        ++count;
        break;
      }
    }
  });
  return count;
}

}  // namespace lra::tasks
