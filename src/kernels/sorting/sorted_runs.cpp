#include "kernels/sorting/sorted_runs.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"

namespace lra::kernels {
namespace {

// Result of a round for one plane, by rank: row order[n] of the tensors has rank n.
struct Round {
  std::vector<int32_t> order, rank;  // rank[order[n]] == n
  std::vector<int32_t> begin, end;   // by rank
};

// Sorts by bucket; `starts` becomes the first rank of each bucket and, last, of the padding.
void sort_by_bucket(const int32_t* buckets, int64_t num_buckets, std::vector<int32_t>& starts,
                    Round& round) {
  const auto length = static_cast<int32_t>(round.order.size());
  starts.assign(static_cast<size_t>(num_buckets + 2), 0);
  for (int32_t t = 0; t < length; ++t) {
    LRA_CHECK_GE(buckets[t], 0);
    LRA_CHECK_LE(buckets[t], num_buckets);
    ++starts[static_cast<size_t>(buckets[t]) + 1];
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<int32_t> next(starts.begin(), starts.end());
  for (int32_t t = 0; t < length; ++t) {
    const int32_t n = next[static_cast<size_t>(buckets[t])]++;
    round.order[static_cast<size_t>(n)] = t;
    round.rank[static_cast<size_t>(t)] = n;
  }
}

// Runs without another row become empty.
void find_runs(const int32_t* buckets, int64_t num_buckets, const RunRules& rules,
               const std::vector<int32_t>& starts, Round& round) {
  for (size_t n = 0; n < round.order.size(); ++n) {
    const auto rank = static_cast<int32_t>(n);
    const auto bucket = static_cast<size_t>(buckets[round.order[n]]);
    int32_t begin = starts[bucket], end = starts[bucket + 1];
    if (rules.chunk > 0) {
      const int64_t chunk = rank / rules.chunk;
      begin = static_cast<int32_t>(std::max<int64_t>(begin, (chunk - 1) * rules.chunk));
      end = static_cast<int32_t>(std::min<int64_t>(end, (chunk + 1) * rules.chunk));
    }
    if (rules.causal) end = rank;
    const bool sees_others = end - begin > (rules.causal ? 0 : 1);
    const bool is_padding = bucket == static_cast<size_t>(num_buckets);
    round.begin[n] = sees_others && !is_padding ? begin : 0;
    round.end[n] = sees_others && !is_padding ? end : 0;
  }
}

// Rows whose run is empty in every round see themselves in the last.
void show_lone_rows_themselves(const int32_t* last_buckets, int64_t num_buckets,
                               std::vector<Round>& rounds) {
  Round& last = rounds.back();
  for (size_t n = 0; n < last.order.size(); ++n) {
    const auto row = static_cast<size_t>(last.order[n]);
    if (last_buckets[row] == num_buckets) continue;
    const bool lone = std::all_of(rounds.begin(), rounds.end(), [&](const Round& round) {
      return round.end[static_cast<size_t>(round.rank[row])] == 0;
    });
    if (!lone) continue;
    last.begin[n] = static_cast<int32_t>(n);
    last.end[n] = static_cast<int32_t>(n) + 1;
  }
}

// Stores one round in the layout of PlaneRuns, with the ranks and runs of its rows in earlier
// rounds.
void store_round(const std::vector<Round>& rounds, size_t index, int32_t* to) {
  const Round& round = rounds[index];
  for (const auto* values : {&round.order, &round.begin, &round.end}) {
    to = std::copy(values->begin(), values->end(), to);
  }
  const size_t length = round.order.size();
  for (size_t e = 0; e < index; ++e, to += 3 * length) {
    const Round& earlier = rounds[e];
    for (size_t n = 0; n < length; ++n) {
      const int32_t rank = earlier.rank[static_cast<size_t>(round.order[n])];
      to[n] = rank;
      to[length + n] = earlier.begin[static_cast<size_t>(rank)];
      to[2 * length + n] = earlier.end[static_cast<size_t>(rank)];
    }
  }
}

}  // namespace

bool PlaneRuns::sees(int64_t n, int64_t m) const {
  if (m < begin()[n] || m >= end()[n]) return false;
  if (m == n && end()[n] - begin()[n] > 1) return false;
  for (int64_t e = 0; e < num_earlier; ++e) {
    const int32_t rank = earlier_rank(e)[m];
    if (rank >= earlier_begin(e)[n] && rank < earlier_end(e)[n]) return false;
  }
  return true;
}

void check_sorted_runs(const SortedRuns& runs, int64_t planes) {
  const auto expect_within = [&](const int32_t* values, int64_t limit) {
    int32_t least = 0, most = 0;
    for (int64_t n = 0; n < runs.length; ++n) {
      least = std::min(least, values[n]);
      most = std::max(most, values[n]);
    }
    LRA_CHECK_GE(least, 0);
    LRA_CHECK_LE(most, limit);
  };
  for (int64_t plane = 0; plane < planes; ++plane) {
    const PlaneRuns of_plane = runs.plane(plane);
    expect_within(of_plane.order, runs.length - 1);
    expect_within(of_plane.begin(), runs.length);
    expect_within(of_plane.end(), runs.length);
  }
}

void make_sorted_runs(const int32_t* buckets, int64_t planes, int64_t length, int64_t num_buckets,
                      const RunRules& rules, int64_t num_rounds, int32_t* const* rounds) {
  LRA_CHECK_GE(num_rounds, 1);
  LRA_CHECK_GE(length, 1);
  LRA_CHECK_GE(rules.chunk, 0);
  parallel_for_each(planes, [&](int64_t plane) {
    const auto size = static_cast<size_t>(length);
    const std::vector<int32_t> zeros(size, 0);
    std::vector<Round> made(static_cast<size_t>(num_rounds), {zeros, zeros, zeros, zeros});
    std::vector<int32_t> starts;
    const auto buckets_of = [&](int64_t r) { return buckets + (r * planes + plane) * length; };
    for (int64_t r = 0; r < num_rounds; ++r) {
      Round& round = made[static_cast<size_t>(r)];
      sort_by_bucket(buckets_of(r), num_buckets, starts, round);
      find_runs(buckets_of(r), num_buckets, rules, starts, round);
    }
    if (rules.lone_rows_see_themselves) {
      show_lone_rows_themselves(buckets_of(num_rounds - 1), num_buckets, made);
    }
    for (int64_t r = 0; r < num_rounds; ++r) {
      store_round(made, static_cast<size_t>(r), rounds[r] + plane * (3 + 3 * r) * length);
    }
  });
}

}  // namespace lra::kernels
