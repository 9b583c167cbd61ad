/* Which process is meant: a pid alone is given to somebody else sooner or later. */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

#define BOOT_ID_BYTES 37

struct identity {
  pid_t pid;
  /* Clock ticks between boot and start. */
  int64_t start_time;
  char boot_id[BOOT_ID_BYTES];
  /* Since 1970. */
  int64_t started_ms;
};

/* False with errno. It is read once, by a fork server for all that it forks. */
bool identity_read_boot(void);

/* Of a process that now is there and was not at `not_before` (boot_ticks). */
struct fault identity_find(struct identity *identity, pid_t pid, int64_t not_before);

#endif
