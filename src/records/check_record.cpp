#include "records/check_record.h"

#include <filesystem>
#include <map>
#include <optional>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/mapped_file.h"
#include "records/step_lines.h"

namespace lra {
namespace {

constexpr const char* kLog = "metrics.jsonl";
constexpr size_t kMaxLineBytes = 65536;  // a line of the program has a few hundred

struct Log {
  std::map<int64_t, Evaluation> validations;  // by step
  std::optional<Evaluation> test;
};

Evaluation evaluation_of(std::string_view line) {
  const Json json = parse_json(line, kLog);
  JsonFields fields(json, kLog);
  return {.step = fields.get<int64_t>("step"),
          .loss = fields.get<double>("loss"),
          .accuracy = fields.get<double>("accuracy"),
          .num_examples = fields.get<int64_t>("examples"),
          .num_positions = fields.find<int64_t>("positions")};
}

Log read_log(std::string_view text) {
  Log log;
  (void)kept_lines(text, [&](std::string_view line) {
    if (line.size() > kMaxLineBytes) return false;
    const StepLine head = step_line_of(line, kLog);
    if (head.kind == "val") log.validations[head.step] = evaluation_of(line);
    if (head.kind == "test") log.test = evaluation_of(line);
    return false;
  });
  return log;
}

// Both files hold the shortest text of the same number.
std::string text_of(const Evaluation& e) {
  const auto exact = [](double number) { return json_text(json_number(number)); };
  return "accuracy " + exact(e.accuracy) + " and loss " + exact(e.loss) + " of " + examples_of(e) +
         " at step " + std::to_string(e.step);
}

// `logged`: null if the log lacks it.
std::string difference(const std::string& what, const Evaluation& recorded,
                       const Evaluation* logged, bool must_be_logged) {
  const std::string ours = text_of(recorded);
  if (!logged) return must_be_logged ? std::string(kLog) + " lacks the " + what + ", " + ours : "";
  const std::string theirs = text_of(*logged);
  return ours == theirs ? "" : "the " + what + " has " + ours + "; " + kLog + " says " + theirs;
}

}  // namespace

std::string difference_from_log(const RunRecord& record, std::string_view metrics) {
  const Log log = read_log(metrics);
  const bool is_done = record.status == RunStatus::kDone;
  std::string found;
  for (const Evaluation& e : record.val_curve) {
    const auto logged = log.validations.find(e.step);
    const bool has_it = logged != log.validations.end();
    found = difference("validation", e, has_it ? &logged->second : nullptr, is_done);
    if (!found.empty()) return found;
  }
  if (!record.test) return "";
  return difference("test", *record.test, log.test ? &*log.test : nullptr, is_done);
}

RunRecord read_consistent_record(const std::string& path) {
  RunRecord record = read_record(path);
  const std::string log = folder_of(path) + "/" + kLog;
  std::error_code error;
  if (record.kind != "train" || std::filesystem::path(path).filename() != "record.json" ||
      (!std::filesystem::exists(log, error) && !error)) {
    return record;
  }
  const MappedFile file(log);
  const std::string found = difference_from_log(
      record, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  if (found.empty()) return record;
  throw Error({.where = path,
               .what = found,
               .expected = "the record and the log of one run",
               .advice = "restore both files of the run, or repeat it"});
}

}  // namespace lra
