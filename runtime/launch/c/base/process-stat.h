/* Fields of /proc/PID/stat. */
#ifndef PROCESS_STAT_H
#define PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum stat_field {
  STAT_PARENT = 4,
  /* Clock ticks between boot and start. */
  STAT_START_TIME = 22,
};

/* False with errno. */
bool process_stat(pid_t pid, enum stat_field field, int64_t *value);

#endif
