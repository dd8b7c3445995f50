// The processes that train one model together ("ranks"), each on its share of every batch.
//
// With one process all of this does nothing, so that the trainer needs no special case.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace lra::training {

// Another rank has ended or does not answer. Exit code 74: a connection broke.
class LostRank : public Error {
 public:
  // `where`: "rank 0 of 2", `what`: "rank 1 was lost".
  LostRank(const std::string& where, const std::string& what)
      : Error({.where = where,
               .what = what,
               .advice = "start all ranks again",
               .code = ExitCode::kIoError}),
        where_(where),
        what_(what) {}
  // The same, with the step at which it happened and how to resume.
  Error at_step(int64_t step, const std::string& advice) const {
    return Error({.where = where_,
                  .what = what_ + " after step " + std::to_string(step),
                  .advice = advice,
                  .code = ExitCode::kIoError});
  }

 private:
  std::string where_, what_;
};

class Ranks {
 public:
  Ranks(int64_t rank, int64_t count);
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int64_t rank() const { return rank_; }
  int64_t count() const { return count_; }
  // True for the rank that writes files and logs.
  bool is_first() const { return rank_ == 0; }
  std::string name() const;  // "rank 1 of 4"
  // Ranks that share this machine's memory, this one among them.
  virtual int64_t count_on_this_machine() const = 0;

  // Begins to add up a contiguous tensor of any device over all ranks, in place: all get the same
  // bits, as does every run with the same number of ranks (with NCCL: on the same machines). It
  // must not be touched until wait(). All ranks begin their sums in one order.
  virtual void begin_sum(const at::Tensor& x) = 0;
  // Waits until all sums that were begun are done. Throws LostRank; their tensors may hold anything
  // then.
  virtual void wait() = 0;

  // Adds up a few numbers, and waits for all sums begun before.
  void sum(std::span<double> values);
  void barrier();
  // True if the text is the same on all ranks; all get the same answer.
  bool all_equal(std::string_view text);
  // Runs `work` on the first rank while the others wait. If it throws, so do all, with the same
  // exit code: the first rank its own error, the others one with its message.
  void on_first(const std::function<void()>& work);

 private:
  const int64_t rank_, count_;
};

// A single process.
class OneRank final : public Ranks {
 public:
  OneRank() : Ranks(0, 1) {}
  int64_t count_on_this_machine() const override { return 1; }
  void begin_sum(const at::Tensor&) override {}
  void wait() override {}
};
Ranks& one_rank();

}  // namespace lra::training
