/*
 * Network namespaces made ahead of time, with their loopback started.
 *
 * To make one takes the kernel as long as all other namespaces of a sandbox together. So the fork server keeps a few, and
 * makes another when it has nothing else to do. While there are enough it waits a little: the launcher that took one would
 * else wait for a processor. A launcher enters one, and its task is born into it. Each is taken out before the fork and used
 * for nothing else: what a task leaves in its network, nobody sees.
 *
 * Nothing is made before a task needs a network of its own, nor for a fork server that is not root: the network must belong
 * to the user namespace of its task, which does not exist yet. Whenever none is ready, the task makes its own.
 */
#ifndef NETWORKS_H
#define NETWORKS_H

#include <stdint.h>

#include "base/arguments.h"
#include "base/fault.h"

/* Kept at a time: tasks that may begin at once, each without a wait. Some 200 KiB of the kernel's memory each. */
#define NETWORKS_KEPT 8

struct networks {
  /* The network of the fork server; ABSENT before the first task that needs one of its own. */
  int own_fd;
  int count;
  int fds[NETWORKS_KEPT];
  /* When the next one is to be made; NEVER while none is wanted, or after one has failed. */
  int64_t due_us;
};

/* Takes one for a task. ABSENT if it needs none, or none is ready. */
int networks_take(struct networks *networks, const struct arguments *arguments);

/* Makes one. A fault means that the caller is in a wrong network now: it must end. */
struct fault networks_add(struct networks *networks);

#endif
