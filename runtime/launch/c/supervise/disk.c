#include "supervise/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"

#define WORKSPACE "workspace"

/* Length of a step. Signals and deadlines wait for so long. */
#define STEP_US 2000
/* Entries between two looks at the clock. */
#define ENTRIES_PER_LOOK 8

/* As for the logs (supervise.c): a task can exceed its limit for so long. */
#define MIN_LOOK_US 10000
#define MAX_LOOK_US 200000
#define BYTES_PER_US 1000
/* Counts take at most this share of the time. */
#define COUNT_SHARE 20

#define BLOCK_BYTES 512

/* Threads whose files are looked at. A limit on processes is far below. */
#define MAX_THREADS (1 << 16)

#define REMOVED_SLOT_BITS 16
#define REMOVED_SLOTS (1 << REMOVED_SLOT_BITS)
/* Removed files that are told apart. Of more, one that several descriptors refer to counts several times. */
#define MAX_REMOVED (REMOVED_SLOTS / 2)
/* 2^64 divided by the golden ratio: it spreads inodes that follow each other. */
#define HASH_FACTOR 0x9E3779B97F4A7C15U

/*
 * Without root, the task and the launcher have one uid, so a directory can be closed to both. It is opened to its owner while
 * a step reads it. Returns the mode to restore, ABSENT if it was open.
 */
static int64_t unlock_directory(int fd) {
  struct stat status;
  struct text path;
  if (fstat(fd, &status) != 0 || (status.st_mode & S_IRWXU) == S_IRWXU) return ABSENT;
  /* fchmod refuses a descriptor that was opened with O_PATH. */
  return chmod(text_set(&path, "/proc/self/fd/%d", fd), S_IRWXU) == 0 ? (int64_t)(status.st_mode & 07777) : ABSENT;
}

/* A mode that the task has set since then stays. */
static void lock_directory(int fd, int64_t mode) {
  struct stat status;
  struct text path;
  if (mode == ABSENT || fstat(fd, &status) != 0 || (status.st_mode & 07777) != S_IRWXU) return;
  chmod(text_set(&path, "/proc/self/fd/%d", fd), (mode_t)mode);
}

static void lock_top(struct disk_watch *watch) {
  if (watch->unlocked_mode != ABSENT) lock_directory(dirfd(watch->levels[watch->depth - 1]), watch->unlocked_mode);
  watch->unlocked_mode = ABSENT;
}

static int open_closed(int parent_fd, const char *name, int flags) {
  int path_fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (path_fd < 0) return ABSENT;
  int64_t mode = unlock_directory(path_fd);
  int fd = openat(parent_fd, name, flags);
  lock_directory(path_fd, mode);
  close(path_fd);
  return fd;
}

/* A directory that is gone by now counts nothing. */
static void enter(struct disk_watch *watch, int parent_fd, const char *name) {
  if (watch->depth == DISK_MAX_DEPTH) {
    watch->is_too_deep = true;
    return;
  }
  int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int fd = openat(parent_fd, name, flags);
  if (fd < 0 && errno == EACCES) fd = open_closed(parent_fd, name, flags);
  DIR *directory = fd < 0 ? NULL : fdopendir(fd);
  if (directory != NULL) {
    lock_top(watch);
    watch->levels[watch->depth++] = directory;
  } else if (fd >= 0) close(fd);
}

static int64_t allocated(const struct stat *status) { return (int64_t)status->st_blocks * BLOCK_BYTES; }

/* Of a file with several names, each counts its share. */
static void count_entry(struct disk_watch *watch, const char *name) {
  if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return;
  int parent_fd = dirfd(watch->levels[watch->depth - 1]);
  struct stat status;
  int result = fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW);
  if (result != 0 && errno == EACCES) {
    watch->unlocked_mode = unlock_directory(parent_fd);
    result = fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW);
  }
  if (result != 0 || status.st_dev != watch->device) return;
  bool is_directory = S_ISDIR(status.st_mode);
  watch->counted_bytes += allocated(&status) / (is_directory || status.st_nlink == 0 ? 1 : (int64_t)status.st_nlink);
  if (is_directory) enter(watch, parent_fd, name);
}

static void leave(struct disk_watch *watch) {
  lock_top(watch);
  closedir(watch->levels[--watch->depth]);
}

static void walk_on(struct disk_watch *watch) {
  struct dirent *entry = readdir(watch->levels[watch->depth - 1]);
  if (entry != NULL) count_entry(watch, entry->d_name);
  else leave(watch);
}

/* Removed files that were counted, as a hash table of their inodes. 0 is no inode. */
static struct {
  int count;
  ino_t slots[REMOVED_SLOTS];
} removed;

static bool is_known(ino_t inode) {
  size_t slot = (size_t)(inode * HASH_FACTOR >> (64 - REMOVED_SLOT_BITS));
  for (; removed.slots[slot] != 0; slot = (slot + 1) % REMOVED_SLOTS)
    if (removed.slots[slot] == inode) return true;
  if (removed.count < MAX_REMOVED) {
    removed.slots[slot] = inode;
    removed.count++;
  }
  return false;
}

static void count_removed(struct disk_watch *watch, int dir_fd, const char *name) {
  struct stat status;
  if (fstatat(dir_fd, name, &status, 0) != 0) return;
  bool is_removed = S_ISREG(status.st_mode) && status.st_nlink == 0 && status.st_dev == watch->device;
  if (is_removed && !is_known(status.st_ino)) watch->counted_bytes += allocated(&status);
}

static void read_descriptor(struct disk_watch *watch) {
  struct dirent *entry = readdir(watch->descriptors);
  if (entry == NULL) {
    closedir(watch->descriptors);
    watch->descriptors = NULL;
  } else if (entry->d_name[0] != '.') count_removed(watch, dirfd(watch->descriptors), entry->d_name);
}

/*
 * A mapping keeps a file without any descriptor. `maps` is read rather than the directory `map_files`, which the kernel goes
 * through from its start for each part that is read. Only root of the host may follow the links in `map_files`.
 */
static void read_mapping(struct disk_watch *watch) {
  static char *line;
  static size_t line_size;
  static const char DELETED[] = " (deleted)\n";
  ssize_t length = getline(&line, &line_size, watch->mappings);
  if (length < 0) {
    fclose(watch->mappings);
    watch->mappings = NULL;
    return;
  }
  if ((size_t)length < sizeof DELETED || strcmp(line + length - (sizeof DELETED - 1), DELETED) != 0) return;
  char *end;
  unsigned long from = strtoul(line, &end, 16);
  unsigned long to = strtoul(end + 1, NULL, 16);
  struct text path;
  count_removed(watch, ABSENT, text_set(&path, "/proc/%d/map_files/%lx-%lx", watch->mapped_tid, from, to));
}

static struct {
  int count;
  pid_t tids[MAX_THREADS];
} threads;

static void add_thread(pid_t tid, void *context) {
  (void)context;
  if (threads.count < MAX_THREADS) threads.tids[threads.count++] = tid;
}

/* A thread usually has the files and the memory of the one before it. */
static void open_thread(struct disk_watch *watch) {
  pid_t tid = threads.tids[watch->thread];
  pid_t last = watch->thread == 0 ? 0 : threads.tids[watch->thread - 1];
  struct text path;
  if (last == 0 || syscall(SYS_kcmp, tid, last, KCMP_FILES, 0, 0) != 0)
    watch->descriptors = opendir(text_set(&path, "/proc/%d/fd", tid));
  if (last == 0 || syscall(SYS_kcmp, tid, last, KCMP_VM, 0, 0) != 0)
    watch->mappings = fopen(text_set(&path, "/proc/%d/maps", tid), "re");
  watch->mapped_tid = tid;
  watch->thread++;
}

/*
 * Counts until `until_us`. True at the end. Removed files come first: one that is removed later counts once, or not before the
 * next count, and never twice.
 */
static bool count_on(struct disk_watch *watch, int64_t until_us) {
  for (int entries = 1;; entries++) {
    if (watch->descriptors != NULL) read_descriptor(watch);
    else if (watch->mappings != NULL) read_mapping(watch);
    else if (watch->thread < threads.count) open_thread(watch);
    else if (watch->depth > 0) walk_on(watch);
    else return true;
    if (entries % ENTRIES_PER_LOOK == 0 && monotonic_us() >= until_us) break;
  }
  lock_top(watch);
  return false;
}

static int64_t free_bytes(const struct disk_watch *watch) {
  struct statvfs status;
  return fstatvfs(watch->task_dir_fd, &status) == 0 ? (int64_t)(status.f_bfree * status.f_frsize) : 0;
}

static void begin_count(struct disk_watch *watch) {
  struct stat status;
  watch->counted_bytes = 0;
  watch->spent_us = 0;
  watch->free_bytes = free_bytes(watch);
  watch->device = fstatat(watch->task_dir_fd, WORKSPACE, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_dev : 0;
  watch->is_counting = true;
  if (removed.count > 0) memset(&removed, 0, sizeof removed);
  watch->thread = 0;
  threads.count = 0;
  cgroup_each_thread(watch->cgroup, add_thread, NULL);
  enter(watch, watch->task_dir_fd, WORKSPACE);
}

static bool is_over(const struct disk_watch *watch) {
  return watch->is_too_deep || watch->written_bytes > watch->limit_bytes;
}

/* A count that is not complete can tell that there is too much already. */
static void update_written(struct disk_watch *watch) {
  int64_t written_bytes = watch->counted_bytes - watch->given_bytes;
  if (!watch->is_counting || written_bytes > watch->limit_bytes) watch->written_bytes = written_bytes < 0 ? 0 : written_bytes;
}

static int64_t look_in_us(const struct disk_watch *watch) {
  int64_t full_in_us = (watch->limit_bytes - watch->written_bytes) / BYTES_PER_US;
  return full_in_us < MIN_LOOK_US ? MIN_LOOK_US : full_in_us > MAX_LOOK_US ? MAX_LOOK_US : full_in_us;
}

/*
 * Whether to count. A count that is not due yet is made where the free space has shrunk by more than the limit since the last
 * one. Others fill the disk as well, so after each such count it takes twice as much to have another.
 */
static bool is_time_to_count(struct disk_watch *watch, int64_t now_us) {
  if (now_us >= watch->due_us) {
    watch->tolerated_bytes = watch->limit_bytes;
    return true;
  }
  if (watch->free_bytes - free_bytes(watch) <= watch->tolerated_bytes) return false;
  if (watch->tolerated_bytes <= INT64_MAX / 2) watch->tolerated_bytes *= 2;
  return true;
}

/* Rests add up, so counts that came early are paid by later ones. */
static void end_count(struct disk_watch *watch, int64_t now_us) {
  if (watch->due_us < now_us) watch->due_us = now_us;
  watch->due_us += watch->spent_us * COUNT_SHARE;
}

bool disk_watch_step(struct disk_watch *watch) {
  int64_t begin_us = monotonic_us();
  if (!watch->is_counting && !is_time_to_count(watch, begin_us)) {
    int64_t look_us = begin_us + look_in_us(watch);
    watch->look_us = look_us < watch->due_us ? look_us : watch->due_us;
    return false;
  }
  if (!watch->is_counting) begin_count(watch);
  watch->is_counting = !count_on(watch, begin_us + STEP_US);
  update_written(watch);
  int64_t now_us = monotonic_us();
  watch->spent_us += now_us - begin_us;
  if (!watch->is_counting) end_count(watch, now_us);
  watch->look_us = watch->is_counting ? now_us : now_us + look_in_us(watch);
  return is_over(watch);
}

static void stop_count(struct disk_watch *watch) {
  while (watch->depth > 0) leave(watch);
  if (watch->descriptors != NULL) closedir(watch->descriptors);
  if (watch->mappings != NULL) fclose(watch->mappings);
  watch->descriptors = NULL;
  watch->mappings = NULL;
}

void disk_watch_finish(struct disk_watch *watch) {
  if (watch->limit_bytes == ABSENT) return;
  stop_count(watch);
  begin_count(watch);
  watch->is_counting = !count_on(watch, NEVER);
  update_written(watch);
}

void disk_watch_start(struct disk_watch *watch, int task_dir_fd, const struct cgroup *cgroup, int64_t limit_bytes) {
  *watch = (struct disk_watch){
    .task_dir_fd = task_dir_fd,
    .cgroup = cgroup,
    .limit_bytes = limit_bytes,
    .look_us = NEVER,
    .unlocked_mode = ABSENT,
  };
  if (limit_bytes == ABSENT) return;
  disk_watch_finish(watch);
  watch->given_bytes = watch->counted_bytes;
  watch->written_bytes = 0;
  watch->look_us = monotonic_us() + look_in_us(watch);
}
