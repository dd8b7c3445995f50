// Log lines in the form of MLPerf's logging package: ":::MLLOG {...}", one event a line, so that
// its users' scripts can time a run. The compliance rules of a benchmark round are not checked.
#pragma once

#include <cstdint>
#include <string>

#include "io/json.h"
#include "records/run_record.h"

namespace lra::training {

class MlperfLog {
 public:
  // Appends to `path`; an empty path writes nothing. Lines of steps after `step`, and of a test,
  // are dropped, because they will be logged again. Throws lra::Error (74).
  MlperfLog(const std::string& path, int64_t step);
  ~MlperfLog();
  MlperfLog(const MlperfLog&) = delete;
  MlperfLog& operator=(const MlperfLog&) = delete;

  // Settings of the run, as events of their own.
  void begin(const RunRecord& record, int64_t step);
  void evaluation(const std::string& split, const Evaluation& evaluation);
  // The warnings of a run that is done, an event each, then its end.
  void end(const RunRecord& record, int64_t step);

 private:
  void event(const char* type, const char* key, Json value, Json metadata);

  std::string path_;
  int fd_ = -1;
};

}  // namespace lra::training
