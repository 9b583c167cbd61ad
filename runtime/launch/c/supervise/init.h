/*
 * The init: process 1 of a sandbox with a pid namespace.
 *
 * The task cannot be process 1 itself, because the kernel drops signals that process 1 does not handle. So the launcher's
 * child becomes the init and forks the task. The init reaps orphans and passes on signals from outside. When the task has
 * ended, the init reports the wait status, kills all other processes of the namespace (no fork storm escapes that), reports
 * their number and the resource usage, and exits. The kernel takes a while to end a namespace; nobody has to wait for that.
 * If the init is killed, the kernel kills its namespace.
 *
 * The init sends words of a fixed size through a pair of sockets. The kernel adds the pid of the sender as the receiver sees
 * it, which tells the launcher the pid of the task on the host.
 */
#ifndef INIT_H
#define INIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/usage.h"

/* The task was forked, but runs no program yet; it has ended; all its processes are gone. */
enum init_word_kind { INIT_BEGINS = 1, INIT_ENDED, INIT_DONE };

struct init_word {
  enum init_word_kind kind;
  /* INIT_ENDED: wait status of the task. */
  int status;
  /* INIT_DONE: processes killed after the end of the task, and the usage of all reaped processes. */
  int64_t leftovers;
  struct usage usage;
};

/* Makes the pair of sockets. `ours` receives the pid of the sender. */
bool init_channel(int *ours, int *theirs);

bool init_say(int fd, struct init_word word);

/* Never returns. Closes all descriptors but `fd`. */
_Noreturn void init_run(pid_t task, int fd);

/*
 * Waits until the task was forked. False with errno: ESRCH if it never will be, EINTR if `end_fd` became readable first,
 * ETIMEDOUT after `timeout_ms`.
 */
bool init_await_task(int fd, int end_fd, int timeout_ms, pid_t *task);

/* Receives the next word without blocking. If there is none, `is_gone` tells whether there will be none any more. */
bool init_hear(int fd, struct init_word *word, bool *is_gone);

#endif
