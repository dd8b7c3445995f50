#include "data/frame_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "data/stopping.h"

namespace lra {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::array<size_t, 6> kElementBytes = {1, 1, 2, 4, 4, 8};
constexpr uint32_t kMaxSequences = 2, kMaxChannels = 4096, kMaxGroups = 4;

[[noreturn]] void refuse_frame(const std::string& name) {
  throw Error({.where = name,
               .what = "the reader of own data wrote something that is not a frame of examples",
               .advice = "import again"});
}

void read_fully(int fd, uint64_t offset, std::span<std::byte> to, const std::string& name) {
  while (!to.empty()) {
    const ssize_t count = ::pread(fd, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw io_error(name, "cannot be read", errno);
    if (count == 0) refuse_frame(name);
    to = to.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

}  // namespace

Frame::Frame(int fd, uint64_t offset, uint64_t file_bytes, const std::string& name)
    : fd_(fd), name_(name) {
  read_header(offset, file_bytes - offset);
  read_table(file_bytes - first_element_);
}

void Frame::read_header(uint64_t offset, uint64_t most) {
  constexpr std::string_view kMagic = "LRAROWS1";
  std::array<uint32_t, 6> numbers{};
  std::array<std::byte, kMagic.size() + sizeof numbers> header{};
  read_fully(fd_, offset, header, name_);
  std::memcpy(numbers.data(), header.data() + kMagic.size(), sizeof numbers);
  const auto [examples, sequences, element, channels, groups, rest] = numbers;
  const bool is_frame = std::memcmp(header.data(), kMagic.data(), kMagic.size()) == 0 &&
                        sequences >= 1 && sequences <= kMaxSequences &&
                        element < kElementBytes.size() && channels >= 1 &&
                        channels <= kMaxChannels && groups <= kMaxGroups && rest == 0;
  if (!is_frame) refuse_frame(name_);
  examples_ = examples;
  sequences_ = sequences;
  element_ = static_cast<Element>(element);
  channels_ = channels;
  groups_ = groups;
  if (header.size() + table_bytes() > most) refuse_frame(name_);
  first_element_ = offset + header.size() + table_bytes();
}

size_t Frame::size_of_element() const { return kElementBytes.at(static_cast<size_t>(element_)); }

uint64_t Frame::table_bytes() const {
  return examples_ * (sizeof(int32_t) + 1 + uint64_t{8} * groups_ + uint64_t{4} * sequences_);
}

// `most` bytes may be left for the elements.
void Frame::read_table(uint64_t most) {
  table_.resize(table_bytes());
  read_fully(fd_, first_element_ - table_.size(), table_, name_);
  starts_.assign(1, 0);
  for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
    for (int64_t i = 0; i < size(); ++i) {
      starts_.push_back(starts_.back() + static_cast<uint64_t>(length(sequence, i)) * channels_);
      if (starts_.back() > most) refuse_frame(name_);
    }
  }
  bool is_sound = starts_.back() <= most / size_of_element();
  for (int64_t i = 0; i < size() && is_sound; ++i) {
    is_sound = label(i) >= 0 && split(i) <= FrameSplit::kTest;
  }
  if (!is_sound) refuse_frame(name_);
}

const std::byte* Frame::elements() {
  if (elements_.empty()) {
    elements_.resize(end() - first_element_);
    read_fully(fd_, first_element_, elements_, name_);
  }
  return elements_.data();
}

int32_t Frame::label(int64_t example) const {
  return at<int32_t>(static_cast<uint64_t>(example) * sizeof(int32_t));
}

FrameSplit Frame::split(int64_t example) const {
  return at<FrameSplit>(examples_ * sizeof(int32_t) + static_cast<uint64_t>(example));
}

uint64_t Frame::group(int64_t group, int64_t example) const {
  const auto place = static_cast<uint64_t>(group) * examples_ + static_cast<uint64_t>(example);
  return at<uint64_t>(examples_ * (sizeof(int32_t) + 1) + place * 8);
}

int64_t Frame::length(int64_t sequence, int64_t example) const {
  const auto place = static_cast<uint64_t>(sequence) * examples_ + static_cast<uint64_t>(example);
  return at<uint32_t>(examples_ * (sizeof(int32_t) + 1 + uint64_t{8} * groups_) + place * 4);
}

std::pair<uint64_t, uint64_t> Frame::range_of(int64_t sequence, int64_t example) const {
  const auto place = static_cast<size_t>(sequence) * examples_ + static_cast<size_t>(example);
  return {starts_.at(place), starts_.at(place + 1) - starts_.at(place)};
}

std::span<const uint8_t> Frame::text(int64_t sequence, int64_t example) {
  const auto [start, count] = range_of(sequence, example);
  return {reinterpret_cast<const uint8_t*>(elements()) + start, count};
}

template <typename From, typename T>
void Frame::append_as(int64_t sequence, int64_t example, std::vector<T>& to) {
  const auto [start, count] = range_of(sequence, example);
  const std::byte* from = elements() + start * sizeof(From);
  const size_t begin = to.size();
  to.resize(begin + count);
  for (size_t k = 0; k < count; ++k) {
    From value;
    std::memcpy(&value, from + k * sizeof value, sizeof value);
    to[begin + k] = static_cast<T>(value);
  }
}

template <typename T>
void Frame::append_numbers(int64_t sequence, int64_t example, std::vector<T>& to) {
  switch (element_) {
    case Element::kText:
    case Element::kUint8:
      return append_as<uint8_t>(sequence, example, to);
    case Element::kUint16:
      return append_as<uint16_t>(sequence, example, to);
    case Element::kUint32:
      return append_as<uint32_t>(sequence, example, to);
    case Element::kFloat32:
      return append_as<float>(sequence, example, to);
    case Element::kFloat64:
      return append_as<double>(sequence, example, to);
  }
}
template void Frame::append_numbers(int64_t, int64_t, std::vector<uint8_t>&);
template void Frame::append_numbers(int64_t, int64_t, std::vector<uint16_t>&);
template void Frame::append_numbers(int64_t, int64_t, std::vector<uint32_t>&);
template void Frame::append_numbers(int64_t, int64_t, std::vector<double>&);

FrameFile::FrameFile(const std::string& folder) : name_(folder + "/.lra-import") {
  std::string path = name_ + "-XXXXXX";
  fd_ = ::mkstemp(path.data());
  if (fd_ < 0) throw io_error(path, "cannot be created", errno);
  ::unlink(path.c_str());
  ::fcntl(fd_, F_SETFD, FD_CLOEXEC);
}

FrameFile::~FrameFile() {
  if (fd_ >= 0) ::close(fd_);
}

FrameFile::FrameFile(FrameFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}

void FrameFile::for_each(const std::function<void(Frame&)>& visit) const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) throw io_error(name_, "cannot be read", errno);
  const auto file_bytes = static_cast<uint64_t>(status.st_size);
  for (uint64_t offset = 0; offset < file_bytes;) {
    throw_if_stopped();
    Frame frame(fd_, offset, file_bytes, name_);
    visit(frame);
    offset = frame.end();
  }
}

}  // namespace lra
