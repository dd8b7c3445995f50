// Files that are either the old one or the complete new one, whatever happens in between.
//
// The new content goes to a temporary file in the same folder, is flushed to the device and renamed
// over the old file; then the folder is flushed, so that the name survives a power cut as well.
// Every failure is an lra::Error with exit code 74 that names path and cause; the temporary is
// removed and the old file is untouched, unless only the last flush of the folder failed: then the
// new file stands under its name, complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lra {

// Writes a file piece by piece. Nothing is visible under `path` before commit(); without commit()
// the destructor removes the temporary.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::span<const std::byte> data);
  void append(std::string_view data);
  // Bytes appended so far.
  uint64_t size() const { return size_; }
  // Makes the content durable under `path`. Nothing may be appended afterwards.
  void commit();

 private:
  void discard();
  [[noreturn]] void fail(const std::string& what, int errno_value);

  std::string path_, temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

void write_file_atomically(const std::string& path, std::string_view content);

// The whole file. Throws when it cannot be read (exit code 2 when there is no such file, else 74)
// or holds more than `max_bytes` bytes.
std::string read_file(const std::string& path, uint64_t max_bytes);

// Flushes the names in a folder to the device; file systems without such an operation count as
// flushed. Throws with exit code 74.
void sync_folder(const std::string& folder);

// The folder that a file lies in: "a/b" gives "a", "b" gives ".", "/b" gives "/".
std::string folder_of(const std::string& path);

// Writes all of `data` to a descriptor, past interrupted and short writes. Returns 0, or errno.
int write_all(int fd, std::span<const std::byte> data);

// Bytes that this user can still write below `folder`.
uint64_t free_bytes(const std::string& folder);

// Creates `path` and its missing parents; an existing folder is fine.
void make_folder(const std::string& path);

// Held by one process at a time, released by the destructor or by the end of the process, however
// it ends. The lock file itself stays. It holds the owner's process id.
class FileLock {
 public:
  // Throws at once, exit code 2, when another process holds `path`; `what` names the thing that is
  // locked in the message ("the run folder runs/a").
  FileLock(const std::string& path, const std::string& what);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace lra
