/* The files of one task, all in one directory that is opened once: it may be renamed, but not replaced under us. */
#ifndef TASK_DIR_H
#define TASK_DIR_H

#include <stdint.h>

#include "base/arguments.h"
#include "base/fault.h"

struct task_dir {
  /* Of the directory itself. */
  int fd;
  /* Holds the lock. The same as `fd`, unless we were given one of a file of somebody's choice. */
  int lock_fd;
  int stdout_fd;
  int stderr_fd;
};

/*
 * Opens the directory and takes its lock, which is that of whoever has `fd` open. A request may wait for long, and its task
 * end and be removed meanwhile; then its name may be that of a new task. So the request says by `task_dir_id` which
 * directory it is for: `INODE:NANOSECONDS`, of request.json in it, which is written once, and its time of modification.
 * ESTALE when it is another one.
 */
struct fault task_dir_lock(int *fd, const struct arguments *arguments);

/* Takes the lock: whoever has it is the launcher of this task, until it ends in whatever way. Refuses a task that ran. */
struct fault task_dir_open(struct task_dir *dir, const struct arguments *arguments);

/* The logs belong to the user `owner` who writes them, or to us if ABSENT: only an owner can open /dev/stdout again. */
struct fault task_dir_open_logs(struct task_dir *dir, int64_t owner);

/* Of a copy of us: lets go of the lock without taking it from us, keeping the logs. */
void task_dir_leave(const struct task_dir *dir);

/* Bytes in a log, or ABSENT. */
int64_t log_bytes(int fd);

#endif
