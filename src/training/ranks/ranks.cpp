#include "training/ranks/ranks.h"

#include <vector>

#include "base/hash.h"
#include "base/launch_environment.h"
#include "ops/libtorch.h"

namespace lra::training {
Ranks::Ranks(int64_t rank, int64_t count) : rank_(rank), count_(count) {
  LRA_CHECK(0 <= rank && rank < count);
}

std::string Ranks::name() const { return Launch{.rank = rank_, .num_ranks = count_}.name(); }

void Ranks::sum(std::span<double> values) {
  if (count_ == 1) return;
  begin_sum(at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble));
  wait();
}

void Ranks::barrier() {
  double nothing = 0;
  sum({&nothing, 1});
}

bool Ranks::all_equal(std::string_view text) {
  if (count_ == 1) return true;
  // Two halves of 32 bits of the hash, which a double holds exactly; every rank has its own places.
  const uint64_t hash = hash64(text);
  std::vector<double> halves(static_cast<size_t>(2 * count_));
  halves[static_cast<size_t>(2 * rank_)] = static_cast<double>(hash >> 32);
  halves[static_cast<size_t>(2 * rank_ + 1)] = static_cast<double>(hash & UINT32_MAX);
  sum(halves);
  for (size_t i = 2; i < halves.size(); ++i) {
    if (halves[i] != halves[i % 2]) return false;
  }
  return true;
}

void Ranks::on_first(const std::function<void()>& work) {
  if (count_ == 1) return work();
  double code = 0;
  std::exception_ptr failure;
  if (is_first()) {
    try {
      work();
    } catch (const Error& error) {
      code = static_cast<double>(error.code());
      failure = std::current_exception();
    } catch (...) {
      code = static_cast<double>(ExitCode::kOurBug);
      failure = std::current_exception();
    }
  }
  try {
    sum({&code, 1});
  } catch (const LostRank&) {
    if (failure) std::rethrow_exception(failure);
    throw;
  }
  if (failure) std::rethrow_exception(failure);
  if (code == 0) return;
  throw Error({.where = name(),
               .what = "rank 0 cannot continue",
               .advice = "its own message says why",
               .code = static_cast<ExitCode>(static_cast<int>(code))});
}

Ranks& one_rank() {
  static OneRank alone;
  return alone;
}

}  // namespace lra::training
