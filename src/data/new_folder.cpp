#include "data/new_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "data/files.h"
#include "data/stopping.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"

namespace lra {
namespace {

// Flushes all files of the file system that contains `folder`.
void flush_all(const std::string& folder) {
  const int fd = open_file(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int failed = fd < 0 || ::syncfs(fd) != 0 ? errno : 0;
  if (fd >= 0) ::close(fd);
  if (failed) throw io_error(folder, "cannot flush", failed);
}

}  // namespace

std::string without_trailing_slash(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

std::string partial_of(const std::string& folder) { return folder + ".lra.partial"; }

std::string lock_of(const std::string& folder) { return folder + ".lra.lock"; }

void refuse_existing(const std::string& path, const std::string& what, const std::string& option) {
  if (!is_there(path)) return;
  throw Error({.where = path,
               .what = "exists already",
               .expected = what + " that does not exist yet",
               .advice = "remove it or choose another " + option});
}

void rename_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno == EEXIST) refuse_existing(to);
  if (errno == EINVAL && ::rename(from.c_str(), to.c_str()) == 0) return;
  throw io_error(to, "cannot rename " + from, errno);
}

void write_new_folder(const std::string& name,
                      const std::function<void(const std::string& partial)>& fill) {
  const std::string folder = without_trailing_slash(name), partial = partial_of(folder);
  refuse_existing(folder);
  make_folder(folder_of(folder));
  const FileLock lock(lock_of(folder), throw_if_stopped);
  refuse_existing(folder);  // another process may have written it meanwhile
  if (const int failed = remove_tree(partial)) {
    throw io_error(partial, "cannot remove what was left", failed);
  }
  try {
    make_folder(partial);
    fill(partial);
    flush_all(partial);
    rename_new(partial, folder);
  } catch (...) {
    remove_tree(partial);  // what is told is what went wrong before
    throw;
  }
  sync_folder(folder_of(folder));
}

NewFile::NewFile(const std::string& path)
    : path_(path), fd_(open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (fd_ < 0) throw io_error(path, "cannot create", errno);
}

NewFile::~NewFile() { ::close(fd_); }

void NewFile::append(std::span<const std::byte> data) {
  if (const int failed = write_all(fd_, data)) throw io_error(path_, "cannot write", failed);
  size_ += data.size();
}

}  // namespace lra
