// Folders that appear under their name only when all of it is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace lra {

// "a/b" of "a/b/".
std::string without_trailing_slash(std::string folder);

// Throws lra::Error, exit code 2, if `path`, which the option names, exists.
void refuse_existing(const std::string& path, const std::string& what = "a folder",
                     const std::string& option = "--out");

// Renames without replacing; throws like refuse_existing() if `to` exists, and with exit code 74. A
// file system that cannot refuse to replace gets the plain rename, which replaces at most an empty
// folder.
void rename_new(const std::string& from, const std::string& to);

// Paths next to a folder that is being made: the temporary folder, and the lock that keeps other
// processes out. Their names are ones that nobody else gives to files, since the first is removed
// with all its content.
std::string partial_of(const std::string& folder);
std::string lock_of(const std::string& folder);

// Lets `fill` write into partial_of(folder), flushes that to the device as a whole and renames it.
// Of processes that do so at once one writes, the others wait. When `fill` throws nothing stays;
// what a killed process left is removed by the next. Throws as refuse_existing(), what `fill`
// throws, and with exit codes 3 and 74.
void write_new_folder(const std::string& folder,
                      const std::function<void(const std::string& partial)>& fill);

// A file of such a folder: not flushed on its own, which would take a disk hours for a million of
// them. Throws with exit code 74, also when the file exists.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void append(std::span<const std::byte> data);
  uint64_t size() const { return size_; }  // bytes appended so far

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace lra
