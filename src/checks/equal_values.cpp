#include "checks/equal_values.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "data/stopping.h"

namespace lra::checks {
namespace {

using Values = std::vector<double>;

// Rounding of float32 in deviations from the mean, with room for a mean that is far from 0.
double rounding_of(double value) { return 1e-5 * (1 + std::abs(value)); }

// Calls `act(value)` with the values of an example, of all sequences in turn, in the unit in which
// `unit` stores values, until one answers false. Returns whether none did.
template <typename Act>
bool visit_values(const Scaling& unit, const ScaledSplit& from, int64_t example, int64_t num_towers,
                  const Act& act) {
  std::vector<int32_t> words;
  const auto num_channels = static_cast<size_t>(from.split.words_per_token());
  for (int64_t tower = 0; tower < num_towers; ++tower) {
    words.resize(static_cast<size_t>(from.split.sequence_length(example, tower)) * num_channels);
    from.split.read_tokens(example, tower, words);
    for (size_t at = 0; at < words.size(); ++at) {
      const size_t c = at % num_channels;
      const double value = from.scaling.original(std::bit_cast<float>(words[at]), c);
      if (!act((value - unit.original(0, c)) / unit.deviation(c))) return false;
    }
  }
  return true;
}

// Two numbers in which examples differ, even those that were standardized one by one: sums of their
// values with signs drawn at random.
struct Key {
  double first = 0, second = 0;
};

struct KeyedValues {
  Values values;
  Key key;
  double rounding = 0;  // how far the keys of an example equal to this one may be from these

  static KeyedValues of(const Scaling& unit, const ScaledSplit& from, int64_t example,
                        int64_t num_towers) {
    KeyedValues all;
    visit_values(unit, from, example, num_towers, [&](double value) {
      const uint64_t bits = (all.values.size() + 1) * 0x9E3779B97F4A7C15;  // Weyl sequence
      all.key.first += (bits >> 40) % 2 == 0 ? value : -value;
      all.key.second += (bits >> 41) % 2 == 0 ? value : -value;
      all.rounding += rounding_of(value);
      all.values.push_back(value);
      return true;
    });
    return all;
  }
};

bool are_equal(const Values& values, const Scaling& unit, const ScaledSplit& other, int64_t example,
               int64_t num_towers) {
  size_t at = 0;
  const bool begins_alike = visit_values(unit, other, example, num_towers, [&](double value) {
    if (at == values.size() || std::abs(value - values[at]) > rounding_of(value)) return false;
    ++at;
    return true;
  });
  return begins_alike && at == values.size();
}

}  // namespace

int64_t count_equal_values(const ScaledSplit& split, const ScaledSplit& other, int64_t num_towers) {
  if (split.split.words_per_token() != other.split.words_per_token()) return 0;
  const Scaling& unit = split.scaling.means.empty() ? other.scaling : split.scaling;
  struct Known {
    Key key;
    int64_t example;
  };
  constexpr int64_t kBlock = 64;
  std::vector<Known> known(static_cast<size_t>(other.split.size()));
  parallel_ranges(other.split.size(), kBlock, [&](int64_t begin, int64_t end) {
    throw_if_stopped();
    for (int64_t i = begin; i < end; ++i) {
      known[static_cast<size_t>(i)] = {KeyedValues::of(unit, other, i, num_towers).key, i};
    }
  });
  const auto first_key = [](const Known& of) { return of.key.first; };
  std::ranges::sort(known, {}, first_key);
  std::atomic<int64_t> count = 0;
  parallel_ranges(split.split.size(), kBlock, [&](int64_t begin, int64_t end) {
    throw_if_stopped();
    for (int64_t i = begin; i < end; ++i) {
      const KeyedValues own = KeyedValues::of(unit, split, i, num_towers);
      auto candidate = std::ranges::lower_bound(known, own.key.first - own.rounding, {}, first_key);
      for (; candidate != known.end() && candidate->key.first <= own.key.first + own.rounding;
           ++candidate) {
        if (std::abs(candidate->key.second - own.key.second) > own.rounding ||
            !are_equal(own.values, unit, other, candidate->example, num_towers)) {
          continue;
        }
        ++count;
        break;
      }
    }
  });
  return count;
}

}  // namespace lra::checks
