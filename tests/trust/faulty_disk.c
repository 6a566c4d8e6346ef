/* A disk that fails once: counts the calls on what lies below a folder, and fails the n-th one.

   LD_PRELOAD it, with QDSWEEP_DISK naming a file of the struct `disk`, which all processes share: a
   test says there what is to fail, before each command. Each call that counts is appended to
   FILE.log, a line each: its kind and the path. */

#define _GNU_SOURCE
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
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CREATE = 1, WRITE = 2, SYNC = 4, RENAME = 8, LINK = 16, CUT = 32, FOLDER = 64, CLOSE = 128 };
static const char *const NAMES[] = {"create", "write", "sync",   "rename",
                                    "link",   "cut",   "folder", "close"};
/* SHORT: half is written, and the rest the next time. TORN: half is written, then it fails. */
enum { FAIL, SHORT, TORN };

struct disk {
  int kinds, nth, error, how; /* which calls, the n-th of them, errno, FAIL or SHORT or TORN */
  int count, fired;           /* calls so far, and whether one has failed */
  char folder[PATH_MAX];      /* where they count */
};

static struct disk *disk;

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("QDSWEEP_DISK");
  char name[PATH_MAX];
  if (!path) return;
  int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return;
  void *at = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (at == MAP_FAILED) return;
  disk = at;
  snprintf(name, sizeof name, "%s.log", path);
  setenv("QDSWEEP_DISK_LOG", name, 1);
}

static int below(const char *path) {
  size_t length = strlen(disk->folder);
  return length && !strncmp(path, disk->folder, length) && (path[length] == '/' || !path[length]);
}

static void note(int kind, const char *path) {
  char line[PATH_MAX + 16];
  int file = syscall(SYS_openat, AT_FDCWD, getenv("QDSWEEP_DISK_LOG"),
                     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  int length = snprintf(line, sizeof line, "%s %s\n", NAMES[__builtin_ctz(kind)], path);
  if (file < 0) return;
  syscall(SYS_write, file, line, length);
  syscall(SYS_close, file);
}

/* Counts a call, and says whether it is the one that fails. */
static int fails(int kind, const char *path) {
  if (!disk || !(disk->kinds & kind) || !below(path)) return 0;
  note(kind, path);
  if (__sync_add_and_fetch(&disk->count, 1) != disk->nth) return 0;
  disk->fired = 1;
  errno = disk->error;
  return 1;
}

static int fails_at(int kind, int folder, const char *path) {
  char whole[2 * PATH_MAX], from[PATH_MAX] = "";
  if (!disk || !path || !(disk->kinds & kind)) return 0;
  if (path[0] == '/') return fails(kind, path);
  if (folder == AT_FDCWD) {
    if (!getcwd(from, sizeof from)) return 0;
  } else {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    if (readlink(link, from, sizeof from - 1) < 0) return 0;
  }
  snprintf(whole, sizeof whole, "%s/%s", from, path);
  return fails(kind, whole);
}

static int fails_on(int kind, int file) {
  char link[64], path[PATH_MAX] = "";
  int before = errno, found;
  if (!disk || !(disk->kinds & kind)) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  found = readlink(link, path, sizeof path - 1) > 0;
  errno = before;
  return found && fails(kind, path);
}

static int torn_file = -1;

/* How many of some bytes are written: all, half, or -1, with errno. */
static ssize_t allowed(int file, size_t size) {
  if (file == torn_file) {
    torn_file = -1;
    errno = disk->error;
    return -1;
  }
  if (!fails_on(WRITE, file)) return size;
  if (disk->how == FAIL || size < 2) return disk->how == SHORT ? (ssize_t)size : -1;
  if (disk->how == TORN) torn_file = file;
  return size / 2;
}

ssize_t write(int file, const void *from, size_t size) {
  REAL(write);
  ssize_t most = allowed(file, size);
  return most < 0 ? -1 : real(file, from, most);
}

ssize_t pwrite64(int file, const void *from, size_t size, off64_t at) {
  REAL(pwrite64);
  ssize_t most = allowed(file, size);
  return most < 0 ? -1 : real(file, from, most, at);
}

ssize_t pwrite(int file, const void *from, size_t size, off_t at) {
  return pwrite64(file, from, size, at);
}

ssize_t writev(int file, const struct iovec *from, int count) {
  REAL(writev);
  ssize_t most = allowed(file, count ? from[0].iov_len : 0);
  if (most < 0) return -1;
  if (count && (size_t)most < from[0].iov_len) return write(file, from[0].iov_base, most);
  return real(file, from, count);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
  REAL(sendfile64);
  return fails_on(WRITE, to) ? -1 : real(to, from, at, size);
}

ssize_t sendfile(int to, int from, off_t *at, size_t size) {
  return sendfile64(to, from, (off64_t *)at, size);
}

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t size,
                        unsigned int flags) {
  REAL(copy_file_range);
  return fails_on(WRITE, to) ? -1 : real(from, at, to, there, size, flags);
}

#define MODE(flags) \
  mode_t mode = 0; \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list more; \
    va_start(more, flags); \
    mode = va_arg(more, mode_t); \
    va_end(more); \
  }

static int open_file(int folder, const char *path, int flags, mode_t mode) {
  static int (*real)(int, const char *, int, ...);
  if (!real) real = dlsym(RTLD_NEXT, "openat64");
  if ((flags & O_CREAT) && fails_at(CREATE, folder, path)) return -1;
  return real(folder, path, flags, mode);
}

int open(const char *path, int flags, ...) {
  MODE(flags)
  return open_file(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE(flags)
  return open_file(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
  MODE(flags)
  return open_file(folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
  MODE(flags)
  return open_file(folder, path, flags, mode);
}

/* As Linux has it: the file is closed, whatever close() returns. */
int close(int file) {
  REAL(close);
  int failed = 0, before = errno;
  if (disk && (disk->kinds & CLOSE)) {
    int flags = fcntl(file, F_GETFL);
    errno = before;
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) failed = fails_on(CLOSE, file);
  }
  if (file == torn_file) torn_file = -1;
  if (!failed) return real(file);
  real(file);
  errno = disk->error;
  return -1;
}

int fsync(int file) {
  REAL(fsync);
  return fails_on(SYNC, file) ? -1 : real(file);
}

int fdatasync(int file) {
  REAL(fdatasync);
  return fails_on(SYNC, file) ? -1 : real(file);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  return fails_at(RENAME, AT_FDCWD, to) ? -1 : real(from, to);
}

int renameat(int folder, const char *from, int other, const char *to) {
  REAL(renameat);
  return fails_at(RENAME, other, to) ? -1 : real(folder, from, other, to);
}

int link(const char *from, const char *to) {
  REAL(link);
  return fails_at(LINK, AT_FDCWD, to) ? -1 : real(from, to);
}

int linkat(int folder, const char *from, int other, const char *to, int flags) {
  REAL(linkat);
  return fails_at(LINK, other, to) ? -1 : real(folder, from, other, to, flags);
}

int truncate64(const char *path, off64_t size) {
  REAL(truncate64);
  return fails_at(CUT, AT_FDCWD, path) ? -1 : real(path, size);
}

int truncate(const char *path, off_t size) { return truncate64(path, size); }

int ftruncate64(int file, off64_t size) {
  REAL(ftruncate64);
  return fails_on(CUT, file) ? -1 : real(file, size);
}

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  return fails_at(FOLDER, AT_FDCWD, path) ? -1 : real(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
  REAL(mkdirat);
  return fails_at(FOLDER, folder, path) ? -1 : real(folder, path, mode);
}
