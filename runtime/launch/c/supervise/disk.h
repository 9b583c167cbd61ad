/*
 * What a task has written to its workspace: bytes that the file system allocated, so holes count nothing and reserved space
 * counts in full. Removed files that a process still has open or mapped count where the task has a cgroup.
 *
 * A count of a large workspace takes long. So it is done in short steps between events, and the next one waits until counts
 * have taken at most a twentieth of the time. Meanwhile the free space of the file system is looked at, which takes
 * microseconds. If it shrinks by more than the limit, the count comes early.
 */
#ifndef DISK_H
#define DISK_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arguments.h"
#include "sandbox/cgroup.h"

/* Directories below each other that are walked. Whatever is deeper cannot be counted, so the task is ended. */
#define DISK_MAX_DEPTH 256

struct disk_watch {
  /* The directory of the task. */
  int task_dir_fd;
  const struct cgroup *cgroup;
  /* ABSENT if there is no limit. Then nothing is counted. */
  int64_t limit_bytes;
  /* Bytes that were there before the program started, such as inputs. */
  int64_t given_bytes;
  /* Bytes written, by the last count. */
  int64_t written_bytes;
  /* Whether any count met directories that are too deep. */
  bool is_too_deep;
  /* When to go on, by the monotonic clock; NEVER without a limit. */
  int64_t look_us;
  /* When the next count is due. */
  int64_t due_us;
  /* Free bytes of the file system at the begin of the last count, and by how much they may shrink until one is due. */
  int64_t free_bytes;
  int64_t tolerated_bytes;
  /* The count under way: what it has counted, and how long it took. */
  bool is_counting;
  uint64_t device;
  int64_t counted_bytes;
  int64_t spent_us;
  /* First come the files of each thread: the next thread, and the lists of the last one that are being read. */
  int thread;
  pid_t mapped_tid;
  DIR *descriptors;
  FILE *mappings;
  /* Then come the directories: those that are open, from the workspace down. */
  DIR *levels[DISK_MAX_DEPTH];
  int depth;
  /* The mode to restore of the last one, which was closed to its owner. ABSENT for others. */
  int64_t unlocked_mode;
};

/* Counts what is there already. */
void disk_watch_start(struct disk_watch *watch, int task_dir_fd, const struct cgroup *cgroup, int64_t limit_bytes);

/* Goes on with a count, starts one, or waits for it. Returns whether the task has written too much, or too deep. */
bool disk_watch_step(struct disk_watch *watch);

/* Counts once more, to the end. */
void disk_watch_finish(struct disk_watch *watch);

#endif
