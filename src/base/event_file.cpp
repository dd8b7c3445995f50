#include "base/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/error.h"

namespace lra {
namespace {

constexpr size_t kFlushBytes = 64 << 10;
constexpr std::string_view kNameStart = "events.out.tfevents.";

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

// ---- protocol buffers, wire format: tag = field number << 3 | wire type

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

template <typename T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_tag(std::string& out, uint32_t field, WireType type) {
  put_varint(out, field << 3 | type);
}

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

// Strings and nested messages.
void put_bytes(std::string& out, uint32_t field, std::string_view value) {
  put_tag(out, field, kLengthDelimited);
  put_varint(out, value.size());
  out += value;
}

// Field numbers of event.proto, summary.proto and tensor.proto.
constexpr uint32_t kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
                   kEventSessionLog = 7;
constexpr uint32_t kSessionLogStatus = 1;
constexpr int64_t kSessionStart = 1;
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kValueTag = 1, kValueSimple = 2, kValueTensor = 8, kValueMetadata = 9;
constexpr uint32_t kMetadataPlugin = 1, kPluginName = 1;
constexpr uint32_t kTensorDtype = 1, kTensorShape = 2, kTensorString = 8;
constexpr int64_t kDtString = 7;
constexpr uint32_t kShapeDim = 2, kDimSize = 1;

std::string message(uint32_t field, std::string_view content) {
  std::string out;
  put_bytes(out, field, content);
  return out;
}

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

void EventFile::text(std::string_view tag, std::string_view value, int64_t step) {
  // A string tensor of shape [1], marked for the text plugin.
  std::string size;
  put_integer(size, kDimSize, 1);
  std::string tensor;
  put_integer(tensor, kTensorDtype, kDtString);
  tensor += message(kTensorShape, message(kShapeDim, size)) + message(kTensorString, value);
  const std::string plugin = message(kMetadataPlugin, message(kPluginName, "text"));
  const std::string item =
      message(kValueTag, tag) + message(kValueTensor, tensor) + message(kValueMetadata, plugin);
  append_event(step, message(kEventSummary, message(kSummaryValue, item)));
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
