/*
 * A launcher that takes one task after the other.
 *
 * To fork a launcher and to let it end takes the processors 0.1 ms, as much as all else that it does for a short task. So
 * a fork server does not let all of them end: one that is done with its task says so and waits, and is passed the next request
 * as it came, with the descriptor that holds the lock of the task, in one message (inbox.h). A launcher has one task or
 * none at any time, and of a task that has ended nothing is left in it: no child, no descriptor, no signal, no name, no
 * variable, and no change that a task of the same user has made to it from outside (condition.h). Where it cannot be sure of
 * that it ends, as one does that a service started itself. Tasks that run at the same time are not kept from each other:
 * one of the same user could do as much to the launcher of another, or to the fork server.
 */
#ifndef WORKER_H
#define WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arguments.h"
#include "server/condition.h"
#include "server/inbox.h"
#include "server/setproctitle.h"

/* What the fork server is told of a task that has ended in order. It is less than PIPE_BUF: written whole or not at all. */
struct done_word {
  pid_t pid;
  uint32_t launch;
  int32_t exit_code;
};

struct worker {
  /* For the next request, and for the word; ABSENT in a launcher that takes one task only. */
  int channel_fd;
  int done_fd;
  /* What a fork server has given it for good. */
  pid_t fork_server_pid;
  int notify_fd;
  struct setproctitle title;
  struct inbox inbox;
  /* As it was before its first task. */
  struct condition condition;
  /* The request of the task that it has. */
  struct request request;
};

/* The launcher of a service that forks its own. */
struct worker worker_alone(void);

/* To be called before its first task, with no descriptors but those that it keeps. */
void worker_begin(struct worker *worker);

/* Makes the task of `worker->request` ours: its environment, its title, `arguments` beyond what the request says. */
void worker_take(struct worker *worker, struct arguments *arguments, int lock_fd);

enum worker_state {
  WORKER_HAS_TASK,
  /* It is not wanted any more. */
  WORKER_ENDED,
  /* It was given a task that it cannot take, as the complaint says. */
  WORKER_BROKEN,
};

/* Says that the task of `arguments` is over, and waits for the next one. */
enum worker_state worker_next(struct worker *worker, struct arguments *arguments, int exit_code, struct text *complaint);

#endif
