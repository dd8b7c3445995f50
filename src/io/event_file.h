// Writer of TensorBoard event files.
//
// A file is a sequence of TFRecords: length (8 bytes) | masked CRC-32C of the length | data |
// masked CRC-32C of the data, little-endian. The data are tensorflow.Event protocol buffers
// (tensorflow/core/util/event.proto, framework/summary.proto; tensorboard/plugins/hparams).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/histogram.h"

namespace lra {

// A setting of a run, for TensorBoard's HPARAMS page.
struct HParam {
  using Value = std::variant<bool, double, std::string>;
  std::string name;
  Value value;
};

class EventFile {
 public:
  // Starts a new file events.out.tfevents.<time>.<host>.<pid> in `folder`, which must exist. After
  // a resume, `purge_step` is the first step that will be written again: TensorBoard drops events
  // of earlier files from that step on. It reads files in the order of their names, so <time> is
  // the current second, or one after that of the latest file. Throws lra::Error (exit code 74).
  explicit EventFile(const std::string& folder, std::optional<int64_t> purge_step = {});
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  void scalar(std::string_view tag, float value, int64_t step);
  void histogram(std::string_view tag, const Histogram& histogram, int64_t step);
  // The settings of the run and the tags of the scalars by which runs are compared; its end.
  void session_start(std::span<const HParam> parameters, std::span<const std::string> metrics);
  void session_end(bool success);
  // Passes buffered data to the system, where it survives a kill; called automatically every 64 KiB
  // and at the end.
  void flush();
  // The same, and makes it durable.
  void sync();
  const std::string& path() const { return path_; }

 private:
  void append_event(int64_t step, std::string_view payload);
  void hparams_event(std::string_view tag, std::string_view data);

  std::string path_;
  std::string buffer_;
  int fd_ = -1;
};

// CRC-32C (Castagnoli, RFC 3720 appendix B.4) and the mask TFRecord puts on it.
uint32_t crc32c(std::span<const std::byte> data);
uint32_t masked_crc32c(std::span<const std::byte> data);

}  // namespace lra
