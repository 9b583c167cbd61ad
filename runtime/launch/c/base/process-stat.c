#include "base/process-stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/text.h"

/* `pid (name) state ppid ...`, where the name may hold anything. */
#define FIELD_AFTER_NAME 3

bool process_stat(pid_t pid, enum stat_field field, int64_t *value) {
  struct text path;
  char stat[1024];
  if (!read_small_file(AT_FDCWD, text_set(&path, "/proc/%d/stat", pid), stat, sizeof stat)) return false;
  const char *at = strrchr(stat, ')');
  if (at != NULL) at++;
  for (int before = FIELD_AFTER_NAME; at != NULL && before < (int)field; before++) at = strchr(at + 1, ' ');
  if (at == NULL) {
    errno = EPROTO;
    return false;
  }
  *value = strtoll(at, NULL, 10);
  return true;
}
