#include "training/run/mlperf_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/clock.h"
#include "io/atomic_file.h"
#include "records/step_lines.h"

namespace lra::training {
namespace {

constexpr const char* kPoint = "POINT_IN_TIME";
constexpr const char* kStart = "INTERVAL_START";
constexpr const char* kEnd = "INTERVAL_END";
constexpr std::string_view kMark = ":::MLLOG ";
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

bool is_kept(std::string_view line, int64_t step, const std::string& path) {
  if (!line.starts_with(kMark)) return false;
  const Json json = parse_json(line.substr(kMark.size()), path);
  JsonFields fields(json, path);
  JsonFields metadata = fields.object("metadata");
  return metadata.find<int64_t>("step_num").value_or(0) <= step &&
         metadata.find<std::string>("split") != "test";
}

}  // namespace

MlperfLog::MlperfLog(const std::string& path, int64_t step) : path_(path) {
  if (path.empty()) return;
  if (std::filesystem::exists(path)) {
    keep_lines(path, kMaxBytes, [&](std::string_view line) { return is_kept(line, step, path); });
  }
  fd_ = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw io_error(path, "cannot be opened for writing", errno);
}

MlperfLog::~MlperfLog() {
  if (fd_ >= 0) ::close(fd_);
}

void MlperfLog::event(const char* type, const char* key, Json value, Json metadata) {
  if (fd_ < 0) return;
  const Json content = {
      {"namespace", ""},           {"time_ms", static_cast<int64_t>(unix_seconds() * 1e3)},
      {"event_type", type},        {"key", key},
      {"value", std::move(value)}, {"metadata", std::move(metadata)}};
  const std::string line = std::string(kMark) + json_text(content) + "\n";
  const int code = write_all(fd_, std::as_bytes(std::span(line.data(), line.size())));
  if (code != 0) throw io_error(path_, "cannot be written", code);
}

void MlperfLog::begin(const RunRecord& record, int64_t step) {
  const Json at_step = {{"step_num", step}};
  const auto setting = [&](const char* key, Json value) {
    event(kPoint, key, std::move(value), Json::object());
  };
  setting("submission_benchmark", "lra_" + record.task + "_" + record.model);
  setting("seed", record.seed);
  if (const ConfigValue* train = record.config.find("train")) {
    const ConfigTable& table = *train->as_table();
    for (const auto& [key, name] : {std::pair{"global_batch_size", "batch_size"},
                                    std::pair{"opt_base_learning_rate", "learning_rate"},
                                    std::pair{"opt_learning_rate_warmup_steps", "warmup_steps"},
                                    std::pair{"opt_weight_decay", "weight_decay"}}) {
      const ConfigValue* value = table.find(name);
      if (!value) continue;
      if (const auto* whole = std::get_if<int64_t>(&value->value)) setting(key, *whole);
      if (const auto* number = std::get_if<double>(&value->value)) setting(key, *number);
    }
  }
  setting("max_steps", record.planned_steps);
  event(kStart, "run_start", nullptr, at_step);
}

void MlperfLog::evaluation(const std::string& split, const Evaluation& e) {
  const Json metadata = {{"step_num", e.step}, {"split", split}, {"samples", e.num_examples}};
  event(kPoint, "eval_accuracy", e.accuracy, metadata);
  event(kPoint, "eval_loss", json_number(e.loss), metadata);
}

void MlperfLog::end(const RunRecord& record, int64_t step) {
  const bool is_done = record.status == RunStatus::kDone;
  if (is_done) {
    for (const std::string& warning : record.warnings.value_or(std::vector<std::string>{})) {
      event(kPoint, "warning", warning, {{"step_num", step}});
    }
  }
  event(kEnd, "run_stop", nullptr,
        {{"status", is_done ? "success" : "aborted"}, {"step_num", step}});
}

}  // namespace lra::training
