// Examples as the reader of own data (python/lra/_reading) hands them over: frames of a few
// megabytes, one after another, in an unnamed file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lra {

// Numbers of the reader's splits; kNone: the source does not say.
enum class FrameSplit : uint8_t { kNone, kTrain, kVal, kTest };

// One frame, which is little-endian and has no gaps: the header (8 bytes "LRAROWS1", then uint32
// examples N, sequences S of an example, type of the elements, channels C, groups G, 0), int32
// labels [N], uint8 splits [N], uint64 groups [G, N], uint32 lengths [S, N] in positions, and for
// each sequence the C elements of each position of all examples.
//
// The elements are read when the first of them is asked for, all else at once.
class Frame {
 public:
  enum class Element : uint32_t { kText, kUint8, kUint16, kUint32, kFloat32, kFloat64 };

  // Reads the frame at `offset` of a file of `file_bytes`, which is named `name` in messages.
  // Throws lra::Error for anything that is not a frame within it.
  Frame(int fd, uint64_t offset, uint64_t file_bytes, const std::string& name);
  // The offset of the next frame.
  uint64_t end() const { return first_element_ + starts_.back() * size_of_element(); }

  int64_t size() const { return static_cast<int64_t>(examples_); }
  int64_t num_sequences() const { return sequences_; }
  int64_t num_groups() const { return groups_; }
  int64_t channels() const { return channels_; }
  Element element() const { return element_; }
  int32_t label(int64_t example) const;
  FrameSplit split(int64_t example) const;
  uint64_t group(int64_t group, int64_t example) const;
  int64_t length(int64_t sequence, int64_t example) const;  // positions
  // The bytes of a text.
  std::span<const uint8_t> text(int64_t sequence, int64_t example);
  // Appends the numbers, `channels` for each position.
  template <typename T>
  void append_numbers(int64_t sequence, int64_t example, std::vector<T>& to);

 private:
  void read_header(uint64_t offset, uint64_t most);
  void read_table(uint64_t most);
  const std::byte* elements();
  size_t size_of_element() const;
  uint64_t table_bytes() const;
  template <typename T>
  T at(uint64_t offset) const {
    T value;
    std::memcpy(&value, table_.data() + offset, sizeof value);
    return value;
  }
  // The place of an example's first element, and how many there are.
  std::pair<uint64_t, uint64_t> range_of(int64_t sequence, int64_t example) const;
  template <typename From, typename T>
  void append_as(int64_t sequence, int64_t example, std::vector<T>& to);

  int fd_;
  std::string name_;
  uint64_t first_element_ = 0;  // its offset in the file
  uint64_t examples_ = 0;
  uint32_t sequences_ = 0, channels_ = 0, groups_ = 0;
  Element element_ = Element::kText;
  std::vector<std::byte> table_, elements_;
  std::vector<uint64_t> starts_;  // of each example of each sequence, and the end, in elements
};

// The unnamed file that holds the frames: it vanishes with the last process that has it open.
class FrameFile {
 public:
  // Throws lra::Error, exit code 74, if no file can be made in `folder`.
  explicit FrameFile(const std::string& folder);
  ~FrameFile();
  FrameFile(FrameFile&& other) noexcept;
  FrameFile(const FrameFile&) = delete;
  FrameFile& operator=(const FrameFile&) = delete;

  int descriptor() const { return fd_; }
  // Calls `visit` for every frame in order. Only one frame is in memory at a time.
  void for_each(const std::function<void(Frame&)>& visit) const;

 private:
  int fd_ = -1;
  std::string name_;
};

}  // namespace lra
