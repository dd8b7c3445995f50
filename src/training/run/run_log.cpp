#include "training/run/run_log.h"

namespace lra::training {

void RunLog::begin(const RunFolder& folder, const RunRecord& record, int64_t step, bool resumed,
                   bool mlperf_log) {
  metrics_.emplace(folder, step, resumed);
  if (step == 0) metrics_->settings(record.config);
  mlperf_log_.emplace(mlperf_log ? folder.mlperf_log() : "", step);
  mlperf_log_->begin(record, step);
}

void RunLog::step(int64_t step, const RunningMean& mean, double learning_rate, const Speed& speed,
                  double gradient_norm) {
  if (metrics_) metrics_->train(step, mean, learning_rate, speed, gradient_norm);
}

void RunLog::bad_step(int64_t step, const std::string& kind, const std::string& fault) {
  if (metrics_) metrics_->bad_step(step, kind, fault);
}

void RunLog::evaluation(const std::string& split, const Evaluation& evaluation) {
  if (!metrics_) return;
  metrics_->evaluation(split, evaluation);
  mlperf_log_->evaluation(split, evaluation);
}

void RunLog::histograms(const FlatParameters& parameters, int64_t step) {
  if (metrics_) metrics_->histograms(parameters, step);
}

void RunLog::sync() {
  if (metrics_) metrics_->sync();
}

void RunLog::ended(const RunRecord& record, int64_t step) {
  if (!metrics_) return;
  if (record.status != RunStatus::kStopped) metrics_->ended(record.status == RunStatus::kDone);
  mlperf_log_->end(record, step);
}

}  // namespace lra::training
