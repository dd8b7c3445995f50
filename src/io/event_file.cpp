#include "io/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>

#include "base/clock.h"
#include "base/error.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

constexpr size_t kFlushBytes = 64 << 10;
constexpr std::string_view kNameStart = "events.out.tfevents.";

// ---- Protocol buffers' wire format, writing only: a field is its tag (number << 3 | type) and a
// value, a message the fields one after another. A handful of messages does not justify a
// dependency.

enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

template <typename T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_tag(std::string& out, uint32_t field, Type type) { put_varint(out, field << 3 | type); }

void put_integer(std::string& out, uint32_t field, int64_t value) {
  put_tag(out, field, kVarint);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_double(std::string& out, uint32_t field, double value) {
  put_tag(out, field, kFixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(value));
}

void put_float(std::string& out, uint32_t field, float value) {
  put_tag(out, field, kFixed32);
  put_little_endian(out, std::bit_cast<uint32_t>(value));
}

// Strings and messages inside messages.
void put_bytes(std::string& out, uint32_t field, std::string_view value) {
  put_tag(out, field, kLengthDelimited);
  put_varint(out, value.size());
  out += value;
}

// A repeated double, packed.
void put_doubles(std::string& out, uint32_t field, std::span<const double> values) {
  put_tag(out, field, kLengthDelimited);
  put_varint(out, 8 * values.size());
  for (const double value : values) put_little_endian(out, std::bit_cast<uint64_t>(value));
}

// A message that holds one field, a string or message.
std::string message(uint32_t field, std::string_view content) {
  std::string out;
  put_bytes(out, field, content);
  return out;
}

// ---- CRC-32C, one table of 256 remainders: 0.4 GB/s, for records of some 60 bytes

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Field numbers of event.proto, summary.proto, and of the hparams plugin's
// plugin_data.proto and api.proto.
constexpr uint32_t kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
                   kEventSessionLog = 7;
constexpr uint32_t kSessionLogStatus = 1;
constexpr int64_t kSessionStart = 1;
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kValueTag = 1, kValueSimple = 2, kValueHistogram = 5, kValueMetadata = 9;
constexpr uint32_t kHistogramMin = 1, kHistogramMax = 2, kHistogramCount = 3, kHistogramSum = 4,
                   kHistogramSquares = 5, kHistogramLimits = 6, kHistogramCounts = 7;
constexpr uint32_t kMetadataPlugin = 1, kPluginName = 1, kPluginContent = 2;
constexpr uint32_t kHParamsExperiment = 2, kHParamsStart = 3, kHParamsEnd = 4;
constexpr uint32_t kExperimentParameter = 4, kExperimentMetric = 5;
constexpr uint32_t kParameterName = 1, kParameterType = 4, kMetricName = 1, kMetricTag = 2;
constexpr uint32_t kStartParameters = 1, kStartTime = 5, kMapKey = 1, kMapValue = 2;
constexpr uint32_t kValueNumber = 2, kValueString = 3, kValueBool = 4;
constexpr uint32_t kEndStatus = 1, kEndTime = 2;

// The time in the name of the last event file of `folder`; 0 when there is none.
int64_t latest_time_in(const std::string& folder) {
  int64_t latest = 0;
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with(kNameStart)) continue;
    int64_t time = 0;
    std::from_chars(name.data() + kNameStart.size(), name.data() + name.size(), time);
    latest = std::max(latest, time);
  }
  return latest;
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

// google.protobuf.Value.
std::string json_value(const HParam::Value& value) {
  std::string out;
  if (const bool* flag = std::get_if<bool>(&value)) put_integer(out, kValueBool, *flag);
  if (const double* number = std::get_if<double>(&value)) put_double(out, kValueNumber, *number);
  if (const std::string* text = std::get_if<std::string>(&value)) {
    put_bytes(out, kValueString, *text);
  }
  return out;
}

// DataType of api.proto: string 1, bool 2, float64 3.
int64_t data_type(const HParam::Value& value) {
  return std::holds_alternative<std::string>(value) ? 1
         : std::holds_alternative<bool>(value)      ? 2
                                                    : 3;
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> data) {
  uint32_t crc = ~0u;
  for (const std::byte byte : data) {
    crc = crc >> 8 ^ kCrcTable[(crc ^ std::to_integer<uint32_t>(byte)) & 0xFF];
  }
  return ~crc;
}

uint32_t masked_crc32c(std::span<const std::byte> data) {
  const uint32_t crc = crc32c(data);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

EventFile::EventFile(const std::string& folder, std::optional<int64_t> purge_step) {
  const int64_t time = std::max(static_cast<int64_t>(unix_seconds()), latest_time_in(folder) + 1);
  path_ = folder + "/" + std::string(kNameStart) + std::to_string(time) + "." + host_name() + "." +
          std::to_string(::getpid());
  fd_ = open_file(path_, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) throw io_error(path_, "cannot be written", errno);
  append_event(0, message(kEventFileVersion, "brain.Event:2"));
  if (purge_step) {
    std::string status;
    put_integer(status, kSessionLogStatus, kSessionStart);
    append_event(*purge_step, message(kEventSessionLog, status));
  }
  flush();
}

EventFile::~EventFile() {
  // The last scalars of a run that ends; there is nobody left to tell.
  write_all(fd_, bytes_of(buffer_));
  ::close(fd_);
}

void EventFile::append_event(int64_t step, std::string_view payload) {
  std::string event;
  put_double(event, kEventWallTime, unix_seconds());
  if (step != 0) put_integer(event, kEventStep, step);
  event += payload;
  std::string length;
  put_little_endian(length, uint64_t{event.size()});
  buffer_ += length;
  put_little_endian(buffer_, masked_crc32c(bytes_of(length)));
  buffer_ += event;
  put_little_endian(buffer_, masked_crc32c(bytes_of(event)));
  if (buffer_.size() >= kFlushBytes) flush();
}

void EventFile::scalar(std::string_view tag, float value, int64_t step) {
  std::string item = message(kValueTag, tag);
  put_float(item, kValueSimple, value);
  append_event(step, message(kEventSummary, message(kSummaryValue, item)));
}

void EventFile::histogram(std::string_view tag, const Histogram& h, int64_t step) {
  std::string content;
  put_double(content, kHistogramMin, h.min);
  put_double(content, kHistogramMax, h.max);
  put_double(content, kHistogramCount, h.count);
  put_double(content, kHistogramSum, h.sum);
  put_double(content, kHistogramSquares, h.sum_squares);
  put_doubles(content, kHistogramLimits, h.limits);
  put_doubles(content, kHistogramCounts, h.counts);
  const std::string item = message(kValueTag, tag) + message(kValueHistogram, content);
  append_event(step, message(kEventSummary, message(kSummaryValue, item)));
}

void EventFile::hparams_event(std::string_view tag, std::string_view data) {
  const std::string plugin = message(kPluginName, "hparams") + message(kPluginContent, data);
  const std::string item =
      message(kValueTag, tag) + message(kValueMetadata, message(kMetadataPlugin, plugin));
  append_event(0, message(kEventSummary, message(kSummaryValue, item)));
}

void EventFile::session_start(std::span<const HParam> parameters,
                              std::span<const std::string> metrics) {
  std::string experiment, start;
  for (const HParam& parameter : parameters) {
    std::string info = message(kParameterName, parameter.name);
    put_integer(info, kParameterType, data_type(parameter.value));
    put_bytes(experiment, kExperimentParameter, info);
    put_bytes(start, kStartParameters,
              message(kMapKey, parameter.name) + message(kMapValue, json_value(parameter.value)));
  }
  for (const std::string& metric : metrics) {
    put_bytes(experiment, kExperimentMetric, message(kMetricName, message(kMetricTag, metric)));
  }
  put_double(start, kStartTime, unix_seconds());
  hparams_event("_hparams_/experiment", message(kHParamsExperiment, experiment));
  hparams_event("_hparams_/session_start_info", message(kHParamsStart, start));
}

void EventFile::session_end(bool success) {
  std::string end;
  put_integer(end, kEndStatus, success ? 1 : 2);
  put_double(end, kEndTime, unix_seconds());
  hparams_event("_hparams_/session_end_info", message(kHParamsEnd, end));
}

void EventFile::flush() {
  const int problem = write_all(fd_, bytes_of(buffer_));
  buffer_.clear();
  if (problem) throw io_error(path_, "cannot be written", problem);
}

void EventFile::sync() {
  flush();
  if (const int problem = sync_file(fd_)) throw io_error(path_, "cannot be flushed", problem);
}

}  // namespace lra
