// Output of a run while it trains: metrics.jsonl, TensorBoard events, the progress bar's text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/config.h"
#include "io/event_file.h"
#include "records/run_record.h"
#include "training/ranks/flat_parameters.h"
#include "training/settings/run_folder.h"
#include "training/settings/weights_file.h"

namespace lra::training {

// Speed of training since the last line. Tokens are valid ones.
struct Speed {
  double tokens_per_s = 0, examples_per_s = 0;
};

class MetricsLog {
 public:
  // After a resume at `step`, lines and events after it are dropped: they will be written again.
  MetricsLog(const RunFolder& folder, int64_t step, bool resumed);
  ~MetricsLog();

  void train(int64_t step, const RunningMean& mean, double learning_rate, const Speed& speed,
             double gradient_norm);
  // A step whose update was skipped, and the reaction: kind "skip" or "roll_back".
  void bad_step(int64_t step, const std::string& kind, const std::string& fault);
  void evaluation(const std::string& split, const Evaluation& evaluation);
  // TensorBoard only: the settings by which it compares runs, and how the run ended.
  void settings(const ConfigTable& config);
  void ended(bool success);
  // TensorBoard only: weights and gradients of every parameter.
  void histograms(const FlatParameters& parameters, int64_t step);
  // Makes logged lines durable; they are in the files already, where a kill cannot lose them.
  void sync();

 private:
  void line(const std::string& text);
  int fd_ = -1;
  std::string path_;
  EventFile events_;
};

}  // namespace lra::training
