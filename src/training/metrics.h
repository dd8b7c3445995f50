// What a run says while it trains: metrics.jsonl, TensorBoard events, the progress bar's text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/event_file.h"
#include "base/run_record.h"
#include "training/run_folder.h"

namespace lra::training {

// Mean loss and accuracy since the last reset.
class RunningMean {
 public:
  void add(double loss_sum, int64_t correct, int64_t count) {
    loss_sum_ += loss_sum;
    correct_ += correct;
    count_ += count;
  }
  double loss() const { return count_ ? loss_sum_ / static_cast<double>(count_) : 0; }
  double accuracy() const {
    return count_ ? static_cast<double>(correct_) / static_cast<double>(count_) : 0;
  }
  int64_t count() const { return count_; }
  void reset() { *this = {}; }

 private:
  double loss_sum_ = 0;
  int64_t correct_ = 0, count_ = 0;
};

class MetricsLog {
 public:
  // After a resume at `step`, lines of metrics.jsonl after it are dropped: they will be written
  // again.
  MetricsLog(const RunFolder& folder, int64_t step);
  ~MetricsLog();

  void train(int64_t step, const RunningMean& mean, double learning_rate, double tokens_per_s,
             double gradient_norm);
  void evaluation(const std::string& split, const Evaluation& evaluation);
  void flush();

 private:
  void line(const std::string& text);
  int fd_ = -1;
  std::string path_;
  EventFile events_;
};

}  // namespace lra::training
