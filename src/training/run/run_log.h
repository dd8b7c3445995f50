// All output of a run except its record and its checkpoints. Only the first rank writes.
#pragma once

#include <optional>
#include <string>

#include "records/run_record.h"
#include "training/loop/metrics.h"
#include "training/run/mlperf_log.h"

namespace lra::training {

class RunLog {
 public:
  // Writes nothing until begin(), and on a rank that does not call it never.
  RunLog() = default;

  // After a resume at `step`, logs of later steps and of the test are dropped, because they will be
  // logged again.
  void begin(const RunFolder& folder, const RunRecord& record, int64_t step, bool resumed,
             bool mlperf_log);

  void step(int64_t step, const RunningMean& mean, double learning_rate, const Speed& speed,
            double gradient_norm);
  void bad_step(int64_t step, const std::string& kind, const std::string& fault);
  void evaluation(const std::string& split, const Evaluation& evaluation);
  void histograms(const FlatParameters& parameters, int64_t step);
  void sync();
  void ended(const RunRecord& record, int64_t step);

 private:
  std::optional<MetricsLog> metrics_;
  std::optional<MlperfLog> mlperf_log_;
};

}  // namespace lra::training
