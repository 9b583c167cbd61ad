#include "supervise/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"

#define WORKSPACE "workspace"

/* Length of a step. Signals and deadlines wait for so long. */
#define STEP_US 2000
/* Entries between two looks at the clock. */
#define ENTRIES_PER_LOOK 32

/* As for the logs (supervise.c): a task can exceed its limit for so long. */
#define MIN_LOOK_US 10000
#define MAX_LOOK_US 200000
#define BYTES_PER_US 1000
/* A walk takes at most this share of the time. */
#define WALK_SHARE 20

#define BLOCK_BYTES 512

/* Removed files that are told apart. Of more, one that several descriptors refer to counts several times. */
#define MAX_REMOVED 1024

/*
 * Without root, the task and the launcher have one uid, so a directory can be closed to both. It is opened to its owner until it
 * was walked. `mode` is then its old one.
 */
static int open_closed(int parent_fd, const char *name, int flags, int64_t *mode) {
  int path_fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (path_fd < 0) return ABSENT;
  struct stat status;
  struct text path;
  text_set(&path, "/proc/self/fd/%d", path_fd);
  int fd = ABSENT;
  if (fstat(path_fd, &status) == 0 && chmod(path.bytes, S_IRWXU) == 0) {
    *mode = status.st_mode & 07777;
    fd = openat(parent_fd, name, flags);
  }
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
  struct disk_level level = {.mode = ABSENT};
  if (fd < 0 && errno == EACCES) fd = open_closed(parent_fd, name, flags, &level.mode);
  level.directory = fd < 0 ? NULL : fdopendir(fd);
  if (level.directory != NULL) watch->levels[watch->depth++] = level;
  else if (fd >= 0) close(fd);
}

static void leave(struct disk_watch *watch) {
  struct disk_level *level = &watch->levels[--watch->depth];
  if (level->mode != ABSENT) fchmod(dirfd(level->directory), (mode_t)level->mode);
  closedir(level->directory);
}

static int64_t allocated(const struct stat *status) { return (int64_t)status->st_blocks * BLOCK_BYTES; }

/* Of a file with several names, each counts its share. */
static void count_entry(struct disk_watch *watch, const char *name) {
  int parent_fd = dirfd(watch->levels[watch->depth - 1].directory);
  struct stat status;
  if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return;
  if (fstatat(parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_dev != watch->device) return;
  bool is_directory = S_ISDIR(status.st_mode);
  watch->counted_bytes += allocated(&status) / (is_directory || status.st_nlink == 0 ? 1 : (int64_t)status.st_nlink);
  if (is_directory) enter(watch, parent_fd, name);
}

/* Walks until `until_us`. True at the end. */
static bool walk(struct disk_watch *watch, int64_t until_us) {
  for (int entries = 1; watch->depth > 0; entries++) {
    struct dirent *entry = readdir(watch->levels[watch->depth - 1].directory);
    if (entry == NULL) leave(watch);
    else count_entry(watch, entry->d_name);
    if (entries % ENTRIES_PER_LOOK == 0 && monotonic_us() >= until_us) return false;
  }
  return true;
}

struct removed {
  uint64_t device;
  int64_t bytes;
  int count;
  ino_t inodes[MAX_REMOVED];
};

static bool is_known(struct removed *removed, ino_t inode) {
  for (int i = 0; i < removed->count; i++)
    if (removed->inodes[i] == inode) return true;
  if (removed->count < MAX_REMOVED) removed->inodes[removed->count++] = inode;
  return false;
}

static void count_removed(pid_t pid, void *context) {
  struct removed *removed = context;
  struct text path;
  text_set(&path, "/proc/%d/fd", pid);
  DIR *descriptors = opendir(path.bytes);
  if (descriptors == NULL) return;
  for (struct dirent *entry; (entry = readdir(descriptors)) != NULL;) {
    struct stat status;
    if (entry->d_name[0] == '.' || fstatat(dirfd(descriptors), entry->d_name, &status, 0) != 0) continue;
    bool is_removed = S_ISREG(status.st_mode) && status.st_nlink == 0 && status.st_dev == removed->device;
    if (is_removed && !is_known(removed, status.st_ino)) removed->bytes += allocated(&status);
  }
  closedir(descriptors);
}

static int64_t removed_bytes(const struct disk_watch *watch) {
  static struct removed removed;
  removed.device = watch->device;
  removed.bytes = 0;
  removed.count = 0;
  cgroup_each_member(watch->cgroup, count_removed, &removed);
  return removed.bytes;
}

static void begin_walk(struct disk_watch *watch) {
  struct stat status;
  watch->counted_bytes = 0;
  watch->is_too_deep = false;
  watch->spent_us = 0;
  watch->device = fstatat(watch->task_dir_fd, WORKSPACE, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_dev : 0;
  enter(watch, watch->task_dir_fd, WORKSPACE);
}

static bool is_over(const struct disk_watch *watch) { return watch->written_bytes > watch->limit_bytes; }

static void end_walk(struct disk_watch *watch) {
  int64_t written_bytes = watch->counted_bytes + removed_bytes(watch) - watch->given_bytes;
  watch->written_bytes = written_bytes < 0 ? 0 : written_bytes;
  if (watch->is_too_deep && !is_over(watch)) watch->written_bytes = watch->limit_bytes + 1;
}

static int64_t look_in_us(const struct disk_watch *watch) {
  int64_t full_in_us = (watch->limit_bytes - watch->written_bytes) / BYTES_PER_US;
  int64_t in_us = full_in_us < MIN_LOOK_US ? MIN_LOOK_US : full_in_us > MAX_LOOK_US ? MAX_LOOK_US : full_in_us;
  int64_t rest_us = watch->spent_us * WALK_SHARE;
  return in_us > rest_us ? in_us : rest_us;
}

bool disk_watch_step(struct disk_watch *watch) {
  int64_t begin_us = monotonic_us();
  if (watch->depth == 0) begin_walk(watch);
  bool is_done = walk(watch, begin_us + STEP_US);
  if (is_done) end_walk(watch);
  int64_t now_us = monotonic_us();
  watch->spent_us += now_us - begin_us;
  watch->look_us = is_done ? now_us + look_in_us(watch) : now_us;
  return is_done && is_over(watch);
}

void disk_watch_finish(struct disk_watch *watch) {
  if (watch->limit_bytes == ABSENT) return;
  while (watch->depth > 0) leave(watch);
  begin_walk(watch);
  walk(watch, NEVER);
  end_walk(watch);
}

void disk_watch_start(struct disk_watch *watch, int task_dir_fd, const struct cgroup *cgroup, int64_t limit_bytes) {
  *watch = (struct disk_watch){.task_dir_fd = task_dir_fd, .cgroup = cgroup, .limit_bytes = limit_bytes, .look_us = NEVER};
  if (limit_bytes == ABSENT) return;
  disk_watch_finish(watch);
  watch->given_bytes = watch->counted_bytes;
  watch->written_bytes = 0;
  watch->look_us = monotonic_us() + look_in_us(watch);
}
