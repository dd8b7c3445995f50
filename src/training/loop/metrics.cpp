#include "training/loop/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/text_format.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "records/step_lines.h"

namespace lra::training {
namespace {

constexpr uint64_t kMaxMetricsBytes = uint64_t{4} << 30;

// Drops lines of steps after `step` and of the test, and a last line that a crash cut short.
void keep_until(const std::string& path, int64_t step) {
  if (!std::filesystem::exists(path)) return;
  keep_lines(path, kMaxMetricsBytes,
             [&](std::string_view line) { return is_line_until_step(line, step, path); });
}

// "train.steps" -> 200 for every leaf.
void append_parameters(const ConfigTable& table, const std::string& prefix,
                       std::vector<HParam>& parameters) {
  for (const ConfigEntry& entry : table) {
    const std::string name = prefix + entry.key;
    const auto& value = entry.value.value;
    if (const ConfigTable* inner = entry.value.as_table()) {
      append_parameters(*inner, name + ".", parameters);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      parameters.push_back({name, *text});
    } else if (const auto* flag = std::get_if<bool>(&value)) {
      parameters.push_back({name, *flag});
    } else if (const auto* whole = std::get_if<int64_t>(&value)) {
      parameters.push_back({name, static_cast<double>(*whole)});
    } else if (const auto* number = std::get_if<double>(&value)) {
      parameters.push_back({name, *number});
    }
  }
}

}  // namespace

MetricsLog::MetricsLog(const RunFolder& folder, int64_t step, bool resumed)
    : path_(folder.metrics()),
      events_(folder.path, resumed ? std::optional<int64_t>(step + 1) : std::nullopt) {
  // Checks of the record would miss what it held.
  if (resumed && step > 0 && !std::filesystem::exists(path_)) {
    throw Error({.where = path_,
                 .what = "is missing",
                 .expected = "the log of the " + thousands(step) + " steps so far",
                 .advice = "restore it, or start a new run with another --out"});
  }
  keep_until(path_, step);
  fd_ = open_file(path_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw io_error(path_, "cannot be opened for writing", errno);
}

MetricsLog::~MetricsLog() { ::close(fd_); }

void MetricsLog::line(const std::string& text) {
  const std::string whole = text + "\n";
  const int code = write_all(fd_, std::as_bytes(std::span(whole.data(), whole.size())));
  if (code != 0) throw io_error(path_, "cannot write", code);
}

void MetricsLog::train(int64_t step, const RunningMean& mean, double learning_rate,
                       const Speed& speed, double gradient_norm) {
  const std::pair<std::string, double> numbers[] = {{"loss", mean.loss()},
                                                    {"accuracy", mean.accuracy()},
                                                    {"learning_rate", learning_rate},
                                                    {"gradient_norm", gradient_norm},
                                                    {"tokens_per_s", speed.tokens_per_s},
                                                    {"examples_per_s", speed.examples_per_s}};
  Json entry = {{"step", step}, {"kind", "train"}};
  for (const auto& [name, value] : numbers) {
    entry[name] = json_number(value);
    events_.scalar("train/" + name, static_cast<float>(value), step);
  }
  line(json_text(entry));
  events_.flush();
}

void MetricsLog::bad_step(int64_t step, const std::string& kind, const std::string& fault) {
  line(json_text({{"step", step}, {"kind", kind}, {"fault", fault}}));
}

void MetricsLog::evaluation(const std::string& split, const Evaluation& e) {
  Json entry = {{"step", e.step},
                {"kind", split},
                {"loss", json_number(e.loss)},
                {"accuracy", e.accuracy},
                {"examples", e.num_examples}};
  if (e.num_positions) entry["positions"] = *e.num_positions;
  line(json_text(entry));
  events_.scalar(split + "/loss", static_cast<float>(e.loss), e.step);
  events_.scalar(split + "/accuracy", static_cast<float>(e.accuracy), e.step);
  events_.flush();
}

void MetricsLog::settings(const ConfigTable& config) {
  std::vector<HParam> parameters;
  append_parameters(config, "", parameters);
  const std::string metrics[] = {"train/loss", "val/loss", "val/accuracy", "test/accuracy"};
  events_.session_start(parameters, metrics);
}

void MetricsLog::ended(bool success) {
  events_.session_end(success);
  sync();
}

void MetricsLog::histograms(const FlatParameters& parameters, int64_t step) {
  const auto write = [&](const std::string& kind, const at::Tensor& flat) {
    const at::Tensor host = flat.cpu();
    const std::span<const float> all(host.const_data_ptr<float>(),
                                     static_cast<size_t>(host.numel()));
    for (const FlatParameters::Part& part : parameters.parts()) {
      const auto values =
          all.subspan(static_cast<size_t>(part.offset), static_cast<size_t>(part.count));
      events_.histogram(kind + "/" + part.name, histogram_of(values), step);
    }
  };
  write("weights", parameters.values);
  write("gradients", parameters.gradients);
}

void MetricsLog::sync() {
  if (const int problem = sync_file(fd_)) throw io_error(path_, "cannot be flushed", problem);
  events_.sync();
}

}  // namespace lra::training
