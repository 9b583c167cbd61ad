/* Identifies a process beyond its pid, which the kernel reuses. */
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

/* Reads the boot id once; a fork server does it for all its launchers. False with errno. */
bool identity_read_boot(void);

/* Identifies the process `pid`, which exists now and did not at `not_before` (boot_ticks). */
struct fault identity_find(struct identity *identity, pid_t pid, int64_t not_before);

#endif
