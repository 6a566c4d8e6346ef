/* A file system as clusters have them, below a folder: what one process does there, others see late,
   with another clock, without hard links, without locks.

   LD_PRELOAD it, with QDSWEEP_FILES naming a file of the struct `files`, which all processes share.
   QDSWEEP_NODE gives a process a host name and a boot id of its own; of `name@1` and `name@2` the
   host names are equal, as those of cloned machines are. QDSWEEP_CLOCK is how many seconds the clock of its node is ahead, as the times of the files that it writes show it
   (QDSWEEP_CLOCK_MAIN: that of snakemake itself). */

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
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* CLOCK: times of files are those of the writer's clock. LINK: no hard links. RENAME: a file that
   took a name is seen late. LIST: listings are old. NOTHING: locks are granted to everybody.
   REFUSED: locks are refused (ENOLCK). */
enum { CLOCK, LINK, RENAME, LIST, NOTHING, REFUSED, TRAITS };
enum { APPEARED = 1, VANISHED, REPLACED };
enum { EVENTS = 8192, LONGEST = 512 };

struct event {
  double at; /* written last: 0 while the rest is not there */
  int writer, kind, type;
  char path[LONGEST], before[LONGEST]; /* `before`: another name of the file that was replaced */
};

struct files {
  int traits;        /* those that hold, by their bits */
  int fired[TRAITS]; /* how often each of them has changed what a process saw */
  double late[2];    /* how late names and listings are seen [s] */
  char folder[PATH_MAX];
  int count;
  struct event events[EVENTS];
};

static struct files *files;
static char self[64];
static double ahead;

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void fired(int trait) { __sync_add_and_fetch(&files->fired[trait], 1); }
static int has(int trait) { return files && (files->traits >> trait & 1); }

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec + at.tv_nsec / 1e9;
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("QDSWEEP_FILES"), *node = getenv("QDSWEEP_NODE"), *clock;
  char words[4096] = "";
  if (!path) return;
  if (node) snprintf(self, sizeof self, "%s", node);
  int file = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
  ssize_t length = file < 0 ? 0 : syscall(SYS_read, file, words, sizeof words - 1);
  if (file >= 0) syscall(SYS_close, file);
  for (ssize_t i = 0; i < length; i++)
    if (!words[i]) words[i] = ' ';
  clock = getenv(strstr(words, "/snakemake ") ? "QDSWEEP_CLOCK_MAIN" : "QDSWEEP_CLOCK");
  ahead = clock ? atof(clock) : 0;
  file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return;
  void *at = mmap(NULL, sizeof *files, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (at != MAP_FAILED) files = at;
}

/* --- Names ------------------------------------------------------------------------------------ */

/* Makes a path whole, without `.` and `..`; returns whether it is below the folder. */
static int below(int folder, const char *path, char whole[LONGEST]) {
  char raw[2 * PATH_MAX], from[PATH_MAX] = "", *to = whole;
  int before = errno;
  if (!files || !path || !*path) return 0;
  if (path[0] != '/' && folder == AT_FDCWD) {
    if (syscall(SYS_getcwd, from, sizeof from) < 0) from[0] = 0;
  } else if (path[0] != '/') {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    if (syscall(SYS_readlinkat, AT_FDCWD, link, from, sizeof from - 1) < 0) from[0] = 0;
  }
  errno = before;
  if (path[0] != '/' && !from[0]) return 0;
  snprintf(raw, sizeof raw, "%s/%s", from, path);
  whole[0] = 0;
  for (char *rest, *part = strtok_r(raw, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
    if (!strcmp(part, ".")) continue;
    if (!strcmp(part, "..")) {
      while (to > whole && *--to != '/') continue;
      *to = 0;
    } else {
      size_t room = LONGEST - (to - whole), length = strlen(part);
      if (length + 2 > room) return 0;
      *to++ = '/';
      memcpy(to, part, length + 1);
      to += length;
    }
  }
  size_t length = strlen(files->folder);
  return length && !strncmp(whole, files->folder, length) &&
         (whole[length] == '/' || !whole[length]);
}

static int is_below(int file) {
  char link[64], path[PATH_MAX] = "", whole[LONGEST];
  int before = errno;
  if (!files) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  errno = before;
  return length > 0 && path[0] == '/' && below(AT_FDCWD, path, whole);
}

/* --- What was done lately --------------------------------------------------------------------- */

/* A node sees its own doings at once; without nodes, each process is one. */
static int writer(void) {
  unsigned sum = 5381;
  for (const char *at = self; *at; at++) sum = sum * 33 + *at;
  return self[0] ? (int)(sum | 0x40000000) : getpid();
}

static void note(int kind, const char *path, int type, const char *old) {
  int number = __sync_fetch_and_add(&files->count, 1);
  struct event *event = &files->events[number % EVENTS];
  event->at = 0;
  __sync_synchronize();
  event->writer = writer();
  event->kind = kind;
  event->type = type;
  snprintf(event->path, LONGEST, "%s", path);
  snprintf(event->before, LONGEST, "%s", old);
  __sync_synchronize();
  event->at = now();
}

/* The first thing that others did to a name since a time, after what this node did. */
static struct event *lately(const char *path, double since) {
  struct event *found = NULL;
  int last = files->count, me = writer();
  for (int i = last - 1; i >= 0 && i > last - EVENTS; i--) {
    struct event *event = &files->events[i % EVENTS];
    if (event->at && event->at < since) break;
    if (!event->at || strcmp(event->path, path)) continue;
    if (event->writer == me) break;
    found = event;
  }
  return found;
}

/* What a name still shows to this process: NULL, the file itself; "", none; else an older file. */
static const char *stale(int folder, const char *path) {
  char whole[LONGEST];
  if (!has(RENAME) || !below(folder, path, whole)) return NULL;
  struct event *event = lately(whole, now() - files->late[0]);
  if (!event || event->kind == VANISHED || (event->kind == APPEARED && !event->before[0])) return NULL;
  fired(RENAME);
  return event->before[0] == '/' ? event->before : "";
}

static int exists(const char *path) {
  struct stat about;
  return !syscall(SYS_newfstatat, AT_FDCWD, path, &about, AT_SYMLINK_NOFOLLOW);
}

static int type_of(const char *path) {
  struct stat about;
  if (syscall(SYS_newfstatat, AT_FDCWD, path, &about, AT_SYMLINK_NOFOLLOW)) return DT_UNKNOWN;
  return IFTODT(about.st_mode);
}

/* --- Times ------------------------------------------------------------------------------------ */

static void stamp(int file) {
  if (!has(CLOCK) || !ahead || !is_below(file)) return;
  struct timespec both[2];
  int before = errno;
  clock_gettime(CLOCK_REALTIME, &both[0]);
  both[0].tv_sec += (time_t)ahead;
  both[1] = both[0];
  if (!syscall(SYS_utimensat, file, NULL, both, 0)) fired(CLOCK);
  errno = before;
}

/* NULL stands for now, by the clock of this node. */
static const struct timespec *of_node(const struct timespec given[2], struct timespec own[2]) {
  if (given || !ahead) return given;
  clock_gettime(CLOCK_REALTIME, &own[0]);
  own[0].tv_sec += (time_t)ahead;
  own[1] = own[0];
  fired(CLOCK);
  return own;
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
  char whole[LONGEST];
  struct timespec own[2];
  if (has(CLOCK) && below(folder, path, whole)) times = of_node(times, own);
  return syscall(SYS_utimensat, folder, path, times, flags);
}

int futimens(int file, const struct timespec times[2]) {
  struct timespec own[2];
  if (has(CLOCK) && is_below(file)) times = of_node(times, own);
  return syscall(SYS_utimensat, file, NULL, times, 0);
}

ssize_t write(int file, const void *from, size_t size) {
  REAL(write);
  ssize_t written = real(file, from, size);
  stamp(file);
  return written;
}

/* --- Opening and looking ---------------------------------------------------------------------- */

static int boot_id(void) {
  char text[80];
  int file = memfd_create("boot_id", MFD_CLOEXEC);
  int length = snprintf(text, sizeof text, "%s\n", self);
  if (file >= 0 && pwrite(file, text, length, 0) != length) return -1;
  return file;
}

static int open_file(int folder, const char *path, int flags, mode_t mode) {
  static int (*real)(int, const char *, int, ...);
  char whole[LONGEST];
  if (!real) real = dlsym(RTLD_NEXT, "openat64");
  if (self[0] && path && !strcmp(path, "/proc/sys/kernel/random/boot_id")) return boot_id();
  if ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_CREAT)) {
    const char *old = stale(folder, path);
    if (old && !*old) {
      errno = ENOENT;
      return -1;
    }
    if (old) return real(AT_FDCWD, old, flags, mode);
  }
  int is_new = (flags & O_CREAT) && has(LIST) && below(folder, path, whole) && !exists(whole);
  int file = real(folder, path, flags, mode);
  if (is_new && file >= 0) note(APPEARED, whole, DT_REG, "");
  return file;
}

#define MODE(flags) \
  mode_t mode = 0; \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list more; \
    va_start(more, flags); \
    mode = va_arg(more, mode_t); \
    va_end(more); \
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

static int look(int folder, const char *path, struct stat *about, int flags) {
  const char *old = stale(folder, path);
  if (old && !*old) {
    errno = ENOENT;
    return -1;
  }
  if (old) return syscall(SYS_newfstatat, AT_FDCWD, old, about, flags);
  return syscall(SYS_newfstatat, folder, path, about, flags);
}

/* On x86-64 `struct stat64` is `struct stat`. */
int stat(const char *path, struct stat *about) { return look(AT_FDCWD, path, about, 0); }
int stat64(const char *path, struct stat64 *about) { return stat(path, (struct stat *)about); }
int lstat(const char *path, struct stat *about) {
  return look(AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW);
}
int lstat64(const char *path, struct stat64 *about) { return lstat(path, (struct stat *)about); }
int fstatat(int folder, const char *path, struct stat *about, int flags) {
  return look(folder, path, about, flags);
}
int fstatat64(int folder, const char *path, struct stat64 *about, int flags) {
  return look(folder, path, (struct stat *)about, flags);
}

int statx(int folder, const char *path, int flags, unsigned mask, struct statx *about) {
  const char *old = stale(folder, path);
  if (old && !*old) {
    errno = ENOENT;
    return -1;
  }
  return syscall(SYS_statx, old ? AT_FDCWD : folder, old ? old : path, flags, mask, about);
}

int access(const char *path, int mode) {
  struct stat about;
  const char *old = stale(AT_FDCWD, path);
  if (old) return old[0] ? (int)syscall(SYS_faccessat, AT_FDCWD, old, mode) : look(0, path, &about, 0);
  return syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

/* --- Names that come and go ------------------------------------------------------------------- */

int renameat(int folder, const char *from, int other, const char *to) {
  REAL(renameat);
  char source[LONGEST], target[LONGEST], old[LONGEST] = "-";
  if (!(has(RENAME) || has(LIST)) || !below(other, to, target)) return real(folder, from, other, to);
  int had = exists(target), type = type_of(target);
  if (has(RENAME) && had && type == DT_REG) {
    snprintf(old, sizeof old, "%s.before-%d-%d", getenv("QDSWEEP_FILES"), getpid(), files->count);
    if (syscall(SYS_linkat, AT_FDCWD, target, AT_FDCWD, old, 0)) return -1;
  }
  if (real(folder, from, other, to)) return -1;
  if (below(folder, from, source)) note(VANISHED, source, type_of(target), "");
  note(had ? REPLACED : APPEARED, target, type_of(target), old);
  return 0;
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

static int removed(int folder, const char *path, int flags) {
  char whole[LONGEST];
  int noted = has(LIST) && below(folder, path, whole), type = noted ? type_of(whole) : 0;
  int result = syscall(SYS_unlinkat, folder, path, flags);
  if (noted && !result) note(VANISHED, whole, type, "");
  return result;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return removed(folder, path, flags); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode) {
  char whole[LONGEST];
  int result = syscall(SYS_mkdirat, folder, path, mode);
  if (!result && has(LIST) && below(folder, path, whole)) note(APPEARED, whole, DT_DIR, "");
  return result;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int linkat(int folder, const char *from, int other, const char *to, int flags) {
  char whole[LONGEST];
  int inside = below(other, to, whole);
  if (inside && has(LINK)) {
    fired(LINK);
    errno = EPERM;
    return -1;
  }
  int result = syscall(SYS_linkat, folder, from, other, to, flags);
  if (!result && inside && has(LIST)) note(APPEARED, whole, DT_REG, "");
  return result;
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

/* --- Listings --------------------------------------------------------------------------------- */

enum { LISTINGS = 64 };
static __thread struct listing {
  DIR *of;
  int next;     /* the event from which names that are gone are still shown */
  double since; /* what was done later is not seen yet */
  char path[LONGEST];
  struct dirent entry;
} listings[LISTINGS];

/* As NFS has it: whoever changes something in a folder lists it anew. */
static double listed_at(const char *folder) {
  double since = now() - files->late[1];
  size_t length = strlen(folder);
  int last = files->count, me = writer();
  for (int i = last - 1; i >= 0 && i > last - EVENTS; i--) {
    struct event *event = &files->events[i % EVENTS];
    if (event->at && event->at < since) break;
    if (event->at && event->writer == me && !strncmp(event->path, folder, length) &&
        event->path[length] == '/' && !strchr(event->path + length + 1, '/'))
      return event->at;
  }
  return since;
}

static struct listing *listing_of(DIR *directory) {
  char link[64], path[PATH_MAX] = "";
  struct listing *free = NULL;
  for (int i = 0; i < LISTINGS; i++) {
    if (listings[i].of == directory) return &listings[i];
    if (!listings[i].of) free = &listings[i];
  }
  if (!free) return NULL;
  snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd(directory));
  if (syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1) < 0) return NULL;
  if (!below(AT_FDCWD, path, free->path)) return NULL;
  free->of = directory;
  free->since = listed_at(free->path);
  free->next = files->count > EVENTS ? files->count - EVENTS : 0;
  return free;
}

int closedir(DIR *directory) {
  REAL(closedir);
  for (int i = 0; i < LISTINGS; i++)
    if (listings[i].of == directory) listings[i].of = NULL;
  return real(directory);
}

/* Returns the next name that others have removed lately, as if it were still there. */
static struct dirent *ghost(struct listing *listing) {
  size_t length = strlen(listing->path);
  for (; listing->next < files->count; listing->next++) {
    struct event *event = &files->events[listing->next % EVENTS];
    const char *name = event->path + length + 1;
    if (!event->at || strncmp(event->path, listing->path, length) || event->path[length] != '/' ||
        strchr(name, '/') || exists(event->path))
      continue;
    struct event *first = lately(event->path, listing->since);
    if (first != event || event->kind == APPEARED) continue;
    listing->entry.d_ino = 1;
    listing->entry.d_type = event->type;
    listing->entry.d_reclen = sizeof listing->entry;
    snprintf(listing->entry.d_name, sizeof listing->entry.d_name, "%.255s", name);
    listing->next++;
    fired(LIST);
    return &listing->entry;
  }
  return NULL;
}

static struct dirent *next_name(DIR *directory, struct dirent *(*real)(DIR *)) {
  struct listing *listing = has(LIST) ? listing_of(directory) : NULL;
  char whole[2 * LONGEST];
  if (!listing) return real(directory);
  for (struct dirent *entry; (entry = real(directory));) {
    snprintf(whole, sizeof whole, "%s/%s", listing->path, entry->d_name);
    struct event *first = lately(whole, listing->since);
    if (!first || first->kind != APPEARED) return entry;
    fired(LIST);
  }
  int before = errno;
  struct dirent *entry = before ? NULL : ghost(listing);
  errno = before;
  return entry;
}

struct dirent *readdir(DIR *directory) {
  REAL(readdir);
  return next_name(directory, real);
}

/* On x86-64 `struct dirent64` is `struct dirent`. */
struct dirent64 *readdir64(DIR *directory) {
  static struct dirent *(*real)(DIR *);
  if (!real) real = dlsym(RTLD_NEXT, "readdir64");
  return (struct dirent64 *)next_name(directory, real);
}

/* --- Locks, and whose they are ---------------------------------------------------------------- */

/* Returns 0 where a lock is none here, -1 where it is refused, 1 where it is a lock. */
static int granted(int file) {
  if (!(has(NOTHING) || has(REFUSED)) || !is_below(file)) return 1;
  if (has(REFUSED)) {
    fired(REFUSED);
    errno = ENOLCK;
    return -1;
  }
  fired(NOTHING);
  return 0;
}

int flock(int file, int how) {
  int state = granted(file);
  return state < 1 ? state : (int)syscall(SYS_flock, file, how);
}

static int control(int file, int command, void *with) {
  if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK ||
      command == F_OFD_SETLKW) {
    int state = granted(file);
    if (state < 1) return state;
  }
  return syscall(SYS_fcntl, file, command, with);
}

#define WITH(command) \
  va_list more; \
  va_start(more, command); \
  void *with = va_arg(more, void *); \
  va_end(more);

int fcntl(int file, int command, ...) {
  WITH(command)
  return control(file, command, with);
}
int fcntl64(int file, int command, ...) {
  WITH(command)
  return control(file, command, with);
}

int gethostname(char *name, size_t size) {
  REAL(gethostname);
  if (!self[0]) return real(name, size);
  snprintf(name, size, "%.*s", (int)strcspn(self, "@"), self);
  return 0;
}
