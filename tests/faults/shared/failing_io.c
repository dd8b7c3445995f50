/* Makes one call of input or output fail, for io_errors.py; preloaded into the program.
 *
 * Counts the calls that concern paths below FAULT_ROOT, and writes "NUMBER CALL PATH" for each to
 * FAULT_LOG. Call FAULT_AT (from 1; 0: none) fails with errno FAULT_ERRNO; with FAULT_ONWARD set,
 * every later one does too that can run out of space. With EINTR, calls are counted that may be
 * interrupted; with ENOSPC and EDQUOT, those that may take space; with SHORT, writes, of which half
 * is done; else all.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SPACE = 1, SLOW = 2, WRITES = 4 };  /* what a call may do: take space, be interrupted */
enum { MAX_FD = 1024, SHORT = -1 };

static char root[PATH_MAX];
static char *paths[MAX_FD];
static int log_fd = -1, at, error, onward, count;

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

__attribute__((constructor)) static void begin(void) {
  snprintf(root, sizeof root, "%s", setting("FAULT_ROOT"));
  at = atoi(setting("FAULT_AT"));
  error = strcmp(setting("FAULT_ERRNO"), "SHORT") == 0 ? SHORT : atoi(setting("FAULT_ERRNO"));
  onward = *setting("FAULT_ONWARD") != 0;
  log_fd = (int)syscall(SYS_openat, AT_FDCWD, setting("FAULT_LOG"),
                        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

/* The path of NAME in the folder DIR, when it lies below the root; else 0. */
static const char *below(int dir, const char *name, char *out) {
  if (!*root || !name) return 0;
  if (name[0] == '/' || dir == AT_FDCWD) {
    snprintf(out, PATH_MAX, "%s", name);
  } else {
    if (dir < 0 || dir >= MAX_FD || !paths[dir]) return 0;
    snprintf(out, PATH_MAX, "%.2000s/%.2000s", paths[dir], name);
  }
  return strncmp(out, root, strlen(root)) == 0 ? out : 0;
}

static const char *of_fd(int fd) { return fd >= 0 && fd < MAX_FD ? paths[fd] : 0; }

static void remember(int fd, const char *path) {
  if (fd < 0 || fd >= MAX_FD) return;
  free(paths[fd]);
  paths[fd] = path ? strdup(path) : 0;
}

/* Whether this call fails; sets errno. */
static int fails(const char *call, const char *path, int kind) {
  char line[PATH_MAX + 64];
  int number, wanted = 1;
  if (!path) return 0;
  if (error == EINTR) wanted = kind & SLOW;
  if (error == ENOSPC || error == EDQUOT) wanted = kind & SPACE;
  if (error == SHORT) wanted = kind & WRITES;
  if (!wanted) return 0;
  number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  const int length = snprintf(line, sizeof line, "%d %s %s\n", number, call, path);
  syscall(SYS_write, log_fd, line, (size_t)length);
  if (at == 0 || (onward ? number < at : number != at)) return 0;
  if (error > 0) errno = error;
  return 1;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define KIND_OF_OPEN(flags) (SLOW | ((flags)&O_CREAT ? SPACE : 0))
#define MODE(flags)                                       \
  mode_t mode = 0;                                        \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {                \
    va_list rest;                                         \
    va_start(rest, flags);                                \
    mode = va_arg(rest, mode_t);                          \
    va_end(rest);                                         \
  }
/* Opening for writing and for reading have names of their own in the log. */
#define OPEN_NAME(flags) ((flags) & (O_WRONLY | O_RDWR) ? "create" : "open")

#define DEFINE_OPEN(name)                                                      \
  int name(const char *path, int flags, ...) {                                 \
    char full[PATH_MAX];                                                       \
    const char *found = below(AT_FDCWD, path, full);                           \
    MODE(flags)                                                                \
    REAL(name);                                                                \
    if (fails(OPEN_NAME(flags), found, KIND_OF_OPEN(flags))) return -1;        \
    const int fd = real(path, flags, mode);                                    \
    remember(fd, found);                                                       \
    return fd;                                                                 \
  }
#define DEFINE_OPENAT(name)                                                    \
  int name(int dir, const char *path, int flags, ...) {                        \
    char full[PATH_MAX];                                                       \
    const char *found = below(dir, path, full);                                \
    MODE(flags)                                                                \
    REAL(name);                                                                \
    if (fails(OPEN_NAME(flags), found, KIND_OF_OPEN(flags))) return -1;        \
    const int fd = real(dir, path, flags, mode);                               \
    remember(fd, found);                                                       \
    return fd;                                                                 \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

FILE *fopen(const char *path, const char *how) {
  char full[PATH_MAX];
  const char *found = below(AT_FDCWD, path, full);
  const int writes = strpbrk(how, "wa+") != 0;
  REAL(fopen);
  if (fails(writes ? "create" : "open", found, SLOW | (writes ? SPACE : 0))) return 0;
  FILE *file = real(path, how);
  if (file) remember(fileno(file), found);
  return file;
}

DIR *opendir(const char *path) {
  char full[PATH_MAX];
  const char *found = below(AT_FDCWD, path, full);
  REAL(opendir);
  if (fails("opendir", found, 0)) return 0;
  DIR *folder = real(path);
  if (folder) remember(dirfd(folder), found);
  return folder;
}

int closedir(DIR *folder) {
  REAL(closedir);
  remember(dirfd(folder), 0);
  return real(folder);
}

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write);
  if (!fails("write", of_fd(fd), SPACE | SLOW | WRITES)) return real(fd, data, size);
  return error == SHORT ? real(fd, data, (size + 1) / 2) : -1;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  REAL(pwrite);
  if (!fails("pwrite", of_fd(fd), SPACE | SLOW | WRITES)) return real(fd, data, size, offset);
  return error == SHORT ? real(fd, data, (size + 1) / 2, offset) : -1;
}

ssize_t writev(int fd, const struct iovec *parts, int num) {
  REAL(writev);
  if (!fails("writev", of_fd(fd), SPACE | SLOW)) return real(fd, parts, num);
  return -1;
}

ssize_t read(int fd, void *data, size_t size) {
  REAL(read);
  return fails("read", of_fd(fd), SLOW) ? -1 : real(fd, data, size);
}

ssize_t pread(int fd, void *data, size_t size, off_t offset) {
  REAL(pread);
  return fails("pread", of_fd(fd), SLOW) ? -1 : real(fd, data, size, offset);
}

int fsync(int fd) {
  REAL(fsync);
  return fails("fsync", of_fd(fd), SPACE | SLOW) ? -1 : real(fd);
}

int fdatasync(int fd) {
  REAL(fdatasync);
  return fails("fdatasync", of_fd(fd), SPACE | SLOW) ? -1 : real(fd);
}

int syncfs(int fd) {
  REAL(syncfs);
  return fails("syncfs", of_fd(fd), SPACE) ? -1 : real(fd);
}

int ftruncate(int fd, off_t size) {
  REAL(ftruncate);
  return fails("ftruncate", of_fd(fd), SPACE | SLOW) ? -1 : real(fd, size);
}

/* The descriptor is gone also when close fails. */
int close(int fd) {
  REAL(close);
  const int failing = fails("close", of_fd(fd), SPACE | SLOW), problem = errno;
  remember(fd, 0);
  const int result = real(fd);
  if (failing) errno = problem;
  return failing ? -1 : result;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  REAL(mmap);
  return fails("mmap", of_fd(fd), 0) ? MAP_FAILED : real(address, size, protection, flags, fd, offset);
}

int rename(const char *from, const char *to) {
  char full[PATH_MAX];
  REAL(rename);
  return fails("rename", below(AT_FDCWD, to, full), SPACE) ? -1 : real(from, to);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
  char full[PATH_MAX];
  REAL(renameat2);
  if (fails("rename", below(to_dir, to, full), SPACE)) return -1;
  return real(from_dir, from, to_dir, to, flags);
}

int symlink(const char *target, const char *path) {
  char full[PATH_MAX];
  REAL(symlink);
  return fails("symlink", below(AT_FDCWD, path, full), SPACE) ? -1 : real(target, path);
}

int link(const char *from, const char *to) {
  char full[PATH_MAX];
  REAL(link);
  return fails("link", below(AT_FDCWD, to, full), SPACE) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
  char full[PATH_MAX];
  REAL(mkdir);
  return fails("mkdir", below(AT_FDCWD, path, full), SPACE) ? -1 : real(path, mode);
}

int unlink(const char *path) {
  char full[PATH_MAX];
  REAL(unlink);
  return fails("unlink", below(AT_FDCWD, path, full), 0) ? -1 : real(path);
}

int unlinkat(int dir, const char *path, int flags) {
  char full[PATH_MAX];
  REAL(unlinkat);
  return fails("unlink", below(dir, path, full), 0) ? -1 : real(dir, path, flags);
}

int rmdir(const char *path) {
  char full[PATH_MAX];
  REAL(rmdir);
  return fails("unlink", below(AT_FDCWD, path, full), 0) ? -1 : real(path);
}

int statvfs(const char *path, void *info) {
  char full[PATH_MAX];
  int (*real)(const char *, void *) = (int (*)(const char *, void *))dlsym(RTLD_NEXT, "statvfs");
  return fails("statvfs", below(AT_FDCWD, path, full), 0) ? -1 : real(path, info);
}
