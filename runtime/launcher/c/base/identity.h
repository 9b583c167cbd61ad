/* Which process is meant: a pid alone is given to somebody else sooner or later. */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"

#define BOOT_ID_BYTES 37

struct identity {
  pid_t launcher_pid;
  pid_t pid;
  /* Clock ticks between boot and start. */
  int64_t start_time;
  char boot_id[BOOT_ID_BYTES];
  /* Since 1970. */
  int64_t started_ms;
};

/* False with errno. It is read once, by a fork server for all that it forks. */
bool identity_read_boot(void);

/* What is known of a process that we are about to make: who makes it, and before what time it is not there. */
struct identity identity_before_birth(void);

/* The rest, once it is there. */
struct fault identity_after_birth(struct identity *identity, pid_t pid);

#endif
