#include "cli/live_lines.h"

#include <fstream>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/text_format.h"
#include "cli/terminal.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace lra::cli {
namespace {

constexpr double kInterval = 0.25;  // seconds between two redraws

}  // namespace

std::optional<Pace> last_pace(const std::string& path) {
  constexpr std::streamoff kTail = 8192;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg(), begin = std::max<std::streamoff>(0, size - kTail);
  std::string tail(static_cast<size_t>(size - begin), '\0');
  file.seekg(begin);
  if (!file.read(tail.data(), size - begin)) return {};
  std::optional<Pace> pace;
  for (size_t at = tail.find("{\"step\""); at != std::string::npos;) {
    const size_t end = tail.find('\n', at);
    if (end == std::string::npos) break;  // being written
    const Json line = parse_json(std::string_view(tail).substr(at, end - at), path);
    JsonFields fields(line, path);
    if (fields.get<std::string>("kind") == "train") {
      pace = {.step = fields.get<int64_t>("step"),
              .loss = fields.get<double>("loss"),
              .accuracy = fields.get<double>("accuracy"),
              .tokens_per_s = fields.get<double>("tokens_per_s")};
    }
    at = tail.find("{\"step\"", end);
  }
  return pace;
}

LiveLines::~LiveLines() {
  lines_.clear();
  draw("");
}

void LiveLines::add(size_t id, const std::string& name, const std::string& log, int64_t steps) {
  const auto before = last_pace(log);
  lines_[id] = {.name = name,
                .log = log,
                .steps = steps,
                .initial = before ? before->step : 0,
                .started = monotonic_seconds()};
  draw("");
}

void LiveLines::update() {
  if (monotonic_seconds() >= next_draw_) draw("");
}

std::string LiveLines::text_of(const Line& line) const {
  const auto pace = last_pace(line.log);
  const std::string postfix =
      pace ? "loss=" + fixed(pace->loss, 3) + ", acc=" + fixed(pace->accuracy, 3) + ", " +
                 thousands(static_cast<int64_t>(pace->tokens_per_s)) + " tok/s"
           : std::string();
  const ProgressState state{.description = line.name,
                            .unit = "step",
                            .postfix = postfix,
                            .count = pace ? pace->step : line.initial,
                            .total = line.steps,
                            .initial = line.initial,
                            .elapsed_s = monotonic_seconds() - line.started};
  const int columns = target_.columns > 0 ? target_.columns : window_size(target_.fd).ws_col;
  return progress_line(state, columns - 1, target_.fill);  // the last column would wrap
}

void LiveLines::draw(const std::string& above) {
  if (!is_on()) {
    if (!above.empty()) write_all(target_.fd, std::as_bytes(std::span(above)));
    return;
  }
  std::string text = num_drawn_ > 0 ? "\x1b[" + std::to_string(num_drawn_) + "A\r\x1b[J" : "";
  text += above;
  num_drawn_ = 0;
  const size_t most = window_size(target_.fd).ws_row - 1;
  for (const auto& [id, line] : lines_) {
    if (num_drawn_ == most) break;
    text += text_of(line) + "\n";
    ++num_drawn_;
  }
  write_all(target_.fd, std::as_bytes(std::span(text)));
  next_draw_ = monotonic_seconds() + kInterval;
}

}  // namespace lra::cli
