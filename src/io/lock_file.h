// Locks that processes take on a file, by flock: released by the end of the process, however it
// ends. The file holds the owner's process id and the machine it runs on.
//
// On NFS, Linux hands flock to the server, so that a lock holds between machines, unless the mount
// has local_lock or nolock. Then, as on file systems without locks between machines, is_locked()
// sees only those of this machine; LockOwner::is_here tells when to doubt it.
//
// LRA_LOCKS=none takes no locks, for file systems that have none: then only one process may write
// to a folder at a time.
#pragma once

#include <functional>
#include <string>

namespace lra {

// False if LRA_LOCKS is "none". Throws lra::Error for other values of it.
bool takes_locks();

// Returns a descriptor that holds the lock, to be closed by the caller, or -1 if another process
// holds it. The file is created if missing. Throws lra::Error: exit code 74, or 2 if something
// other than a lock file is there, including a link.
int try_lock_file(const std::string& path);

// True if some process holds the lock at this moment. Does not create the file.
bool is_locked(const std::string& path);

// The last process that had the lock; an empty id when the file holds none, or is not there.
struct LockOwner {
  std::string process;
  bool is_here = true;  // on the machine that asks, since it was started
};
LockOwner lock_owner(const std::string& path);

// Held by one process at a time, released by the destructor or by the end of the process, however
// it ends.
class FileLock {
 public:
  // True if the destructor removes the file. That cannot lead to two owners: whoever has opened the
  // removed file finds that out and opens the new one.
  enum class AtEnd { kStays, kRemoved };

  // Throws at once, exit code 2, if another process holds `path`; `what` names the locked thing in
  // the message ("the run folder runs/a").
  FileLock(const std::string& path, const std::string& what, AtEnd at_end = AtEnd::kStays);
  // Waits for its turn, and removes the file at the end. `waiting` is called about 20 times a
  // second while another process holds `path`; an exception from it ends the wait.
  FileLock(const std::string& path, const std::function<void()>& waiting);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string path_;
  AtEnd at_end_;
  int fd_ = -1;
};

}  // namespace lra
