/*
 * What a task has written to its workspace: bytes that the file system allocated, so holes count nothing and reserved space
 * counts in full. Removed files that a process still has open count where the task has a cgroup.
 *
 * A walk of a large workspace takes long. So it is done in short steps between events, and the next one waits until it has
 * taken at most a twentieth of the time.
 */
#ifndef DISK_H
#define DISK_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arguments.h"
#include "sandbox/cgroup.h"

/* Directories below each other that are walked. Whatever is deeper cannot be counted, so it counts as over the limit. */
#define DISK_MAX_DEPTH 256

struct disk_level {
  DIR *directory;
  /* The mode to restore: the directory was closed to its owner. ABSENT for others. */
  int64_t mode;
};

struct disk_watch {
  /* The directory of the task. */
  int task_dir_fd;
  const struct cgroup *cgroup;
  /* ABSENT if there is no limit. Then nothing is counted. */
  int64_t limit_bytes;
  /* Bytes that were there before the program started, such as inputs. */
  int64_t given_bytes;
  /* Bytes written, by the last walk. */
  int64_t written_bytes;
  /* When to go on, by the monotonic clock; NEVER without a limit. */
  int64_t look_us;
  /* The walk under way: the open directories from the workspace down, and what it has counted. */
  struct disk_level levels[DISK_MAX_DEPTH];
  int depth;
  bool is_too_deep;
  uint64_t device;
  int64_t counted_bytes;
  int64_t spent_us;
};

/* Counts what is there already. */
void disk_watch_start(struct disk_watch *watch, int task_dir_fd, const struct cgroup *cgroup, int64_t limit_bytes);

/* Goes on with a walk, or starts one. Returns whether the task has written too much. */
bool disk_watch_step(struct disk_watch *watch);

/* Counts once more, to the end. */
void disk_watch_finish(struct disk_watch *watch);

#endif
