#include "server/orphans.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/children.h"
#include "base/clock.h"

/* Launchers for which there is room at the beginning. */
#define FIRST_SIZE 64

/* Between two looks that no end has given reason for: one that hangs in the kernel is there for long. */
#define PAUSE_US 1000000
#define NEVER INT64_MAX

bool orphans_found(struct orphans *orphans) {
  *orphans = (struct orphans){.look_at_us = NEVER};
  return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

bool orphans_make_room(struct orphans *orphans) {
  if (orphans->count < orphans->size) return true;
  size_t size = orphans->size == 0 ? FIRST_SIZE : orphans->size * 2;
  pid_t *launchers = realloc(orphans->launchers, size * sizeof *launchers);
  if (launchers == NULL) return false;
  orphans->launchers = launchers;
  orphans->size = size;
  return true;
}

void orphans_add_launcher(struct orphans *orphans, pid_t pid) { orphans->launchers[orphans->count++] = pid; }

static pid_t *find(const struct orphans *orphans, pid_t pid) {
  for (size_t i = 0; i < orphans->count; i++)
    if (orphans->launchers[i] == pid) return &orphans->launchers[i];
  return NULL;
}

void orphans_note_end(struct orphans *orphans, pid_t pid, int status) {
  pid_t *launcher = find(orphans, pid);
  if (launcher == NULL || WIFSIGNALED(status)) orphans->look_at_us = 0;
  if (launcher != NULL) *launcher = orphans->launchers[--orphans->count];
}

bool orphans_are_gone(const struct orphans *orphans) { return orphans->look_at_us == NEVER; }

int orphans_look_in_ms(const struct orphans *orphans) {
  if (orphans->look_at_us == NEVER) return -1;
  int64_t left_us = orphans->look_at_us - monotonic_us();
  return left_us <= 0 ? 0 : (int)(left_us / US_PER_MS) + 1;
}

static bool is_orphan(pid_t pid, const void *orphans) { return find(orphans, pid) == NULL; }

void orphans_kill(struct orphans *orphans) {
  if (orphans_look_in_ms(orphans) != 0) return;
  orphans->look_at_us = children_kill(is_orphan, orphans) == 0 ? NEVER : monotonic_us() + PAUSE_US;
}
