// Files that are either the old one or the complete new one, whatever happens in between.
//
// The new content goes to a temporary file in the same folder, is flushed to the device and renamed
// over the old file; then the folder is flushed, so that the name survives a power cut as well.
// Every failure is an lra::Error with exit code 74 that names path and cause; the temporary is
// removed and the old file is untouched, unless only the last flush of the folder failed: then the
// complete new file has its name.
//
// Goals of the room `io`: no durable file is ever half written, every file that is read may be
// hostile, and formats are those of other tools. Non-goals: knowledge of runs or tasks, formats
// that nobody else reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lra {

// Writes a file in pieces. Nothing is visible under `path` before commit(); without commit() the
// destructor removes the temporary. Only a regular file is replaced: the constructor throws
// lra::Error (2) if `path` is a folder, a device or a pipe, or a link to one.
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

// Returns the whole file. Throws if it cannot be read (exit code 2 if there is no such file, else
// 74) or has more than `max_bytes` bytes.
std::string read_file(const std::string& path, uint64_t max_bytes);

// Flushes the names in a folder to the device; file systems without such an operation count as
// flushed. Throws with exit code 74.
void sync_folder(const std::string& folder);

// Renames a file or folder, over a file or an empty folder that is there, and flushes the folder
// that holds the new name. Throws with exit code 74.
void move_into_place(const std::string& from, const std::string& to);

// The folder that contains a file or folder: "a/b" and "a/b/" give "a", "b" gives ".", "/b" gives
// "/".
std::string folder_of(const std::string& path);

// open(2), past interruptions: a descriptor, or -1 and errno.
int open_file(const std::string& path, int flags, unsigned mode = 0);

// Writes all of `data` to a descriptor, past interrupted and short writes. Returns 0, or errno.
int write_all(int fd, std::span<const std::byte> data);

// fsync(2), past interruptions. Returns 0, also where the file system has no such operation, or
// errno.
int sync_file(int fd);

// Bytes that this user can still write below `folder`.
uint64_t free_bytes(const std::string& folder);

// Names of the entries of `folder`, in no particular order; none if there is no such folder. Throws
// with exit code 74 if the folder cannot be read, since it need not be empty.
std::vector<std::string> names_in(const std::string& folder);

// Creates `path` and its missing parents, and makes their names durable; an existing folder is
// fine. Throws with exit code 74.
void make_folder(const std::string& path);

// Removes a file, or a folder with all that is in it, past interruptions; none is fine. Returns 0,
// or errno.
int remove_tree(const std::string& path);

// Removes leftovers of atomic files of killed processes in `folder`. Only for a folder in which no
// other process writes.
void remove_temporaries(const std::string& folder);

}  // namespace lra
