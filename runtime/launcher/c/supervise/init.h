/*
 * Process 1 of a sandbox with a pid namespace.
 *
 * The task itself must not be it: that process ignores what it does not handle, its own signals too. So the launcher's
 * child becomes the init, and its own child the task. It reaps whatever loses its parent, passes on signals from outside,
 * and when the task has ended it says how, kills what is left (which in a namespace of its own no storm of forks
 * outruns), says how many that were and what all of them used, and ends. The end of a namespace takes its time, which
 * nobody has to wait for: by then nothing of the task is left. When it is killed, the kernel kills everything in its namespace.
 *
 * It talks to the launcher through a pair of sockets, in words of a fixed size. The kernel adds to each word who says it,
 * as the listener sees that process: so the launcher learns the task's pid on the host.
 */
#ifndef INIT_H
#define INIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/usage.h"

/* The task is there, and has not begun; how it ended; nothing of it is left. */
enum init_word_kind { INIT_BEGINS = 1, INIT_ENDED, INIT_DONE };

struct init_word {
  enum init_word_kind kind;
  /* With INIT_ENDED: as wait() gave it. */
  int status;
  /* With INIT_DONE: what was killed after the task had ended, and what all that it has waited for used. */
  int64_t leftovers;
  struct usage usage;
};

/* Two ends; the first hears who speaks. */
bool init_channel(int *ours, int *theirs);

bool init_say(int fd, struct init_word word);

/* Never returns. `fd` is the only descriptor that it keeps. */
_Noreturn void init_run(pid_t task, int fd);

/*
 * Waits until the task is there. False when it will not be, with ESRCH; when something can be read from `end_fd` meanwhile,
 * with EINTR; or after `timeout_ms`, with ETIMEDOUT.
 */
bool init_await_task(int fd, int end_fd, int timeout_ms, pid_t *task);

/* The next word, if there is one already. */
bool init_hear(int fd, struct init_word *word);

#endif
