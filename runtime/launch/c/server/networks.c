#include "server/networks.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/features.h"
#include "sandbox/namespaces.h"

/* While there are so many, how long the next one waits. */
#define MANY (NETWORKS_KEPT / 2)
#define PATIENCE_US 1000

static bool needs_one(const struct arguments *arguments) {
  unsigned int features = 0;
  return geteuid() == 0 && arguments->sandbox != NULL && features_parse(arguments->sandbox, &features) &&
         (features & FEATURE_NET) != 0;
}

static int open_current(void) { return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC); }

int networks_take(struct networks *networks, const struct arguments *arguments) {
  if (!needs_one(arguments)) return ABSENT;
  if (networks->own_fd == ABSENT) networks->own_fd = open_current();
  if (networks->own_fd == ABSENT) return ABSENT;
  int fd = networks->count > 0 ? networks->fds[--networks->count] : ABSENT;
  if (networks->count < MANY) networks->due_us = 0;
  else if (networks->due_us == NEVER) networks->due_us = monotonic_us() + PATIENCE_US;
  return fd;
}

struct fault networks_add(struct networks *networks) {
  networks->due_us = NEVER;
  /* Whoever may not enter networks could not come back. The next task will say why there can be none. */
  if (setns(networks->own_fd, CLONE_NEWNET) != 0 || unshare(CLONE_NEWNET) != 0) return no_fault();
  int fd = is_fault(namespaces_raise_loopback()) ? ABSENT : open_current();
  if (setns(networks->own_fd, CLONE_NEWNET) != 0) return fault_at(STEP_NAMESPACES);
  if (fd < 0) return no_fault();
  networks->fds[networks->count++] = fd;
  if (networks->count < NETWORKS_KEPT) networks->due_us = 0;
  return no_fault();
}
