/* The directory of a task and its files. It is opened once, so a rename does not matter, and nobody can replace it. */
#ifndef TASK_DIR_H
#define TASK_DIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arguments.h"
#include "base/fault.h"

struct task_dir {
  /* The directory. */
  int fd;
  /* Holds the lock: `fd`, or the descriptor given with --lock-fd. */
  int lock_fd;
  int stdin_fd;
  /* The logs. */
  int stdout_fd;
  int stderr_fd;
  /* What the task writes to: the logs, or the pipes to what masks its output (masked-logs.h). */
  int task_stdout_fd;
  int task_stderr_fd;
};

/*
 * Opens the directory and takes its lock, which lasts as long as `fd` is open anywhere. While a request waits, its task may
 * be removed and its name go to a new task. So `task_dir_id` identifies the directory: `INODE:NANOSECONDS` of its
 * request.json, which is written once, and of the modification time. ESTALE for another directory.
 */
struct fault task_dir_lock(int *fd, const struct arguments *arguments);

/* Opens the directory and holds its lock until the launcher ends. EEXIST if the task ran before. */
struct fault task_dir_open(struct task_dir *dir, const struct arguments *arguments);

/*
 * Opens the logs. They belong to the service, so a sandbox user can neither lease them nor change their mode. `group`, which
 * may write them, can reopen /dev/stdout. Where it is ABSENT the task has the user of the service.
 */
struct fault task_dir_open_logs(struct task_dir *dir, int64_t group);

/* Opens the standard input of the task: a file of the directory, or /dev/null. */
struct fault task_dir_open_stdin(struct task_dir *dir, const char *name);

/* In the child: closes the directory and its copy of the lock, and keeps standard input and the logs open. */
void task_dir_leave(const struct task_dir *dir);

/* Lets the group write what the descriptor stands for. False with errno. */
bool share_with_group(int fd, gid_t group);

/* Bytes in a log, or ABSENT. */
int64_t log_bytes(int fd);

#endif
