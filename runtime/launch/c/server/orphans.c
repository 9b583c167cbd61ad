#include "server/orphans.h"

#include "base/children.h"
#include "base/clock.h"

/* Interval between looks while orphans are left that KILL does not end. */
#define PAUSE_US 1000000

static bool is_orphan(pid_t pid, const void *table) { return !job_table_has_launcher(table, pid); }

void orphans_kill(struct orphans *orphans, const struct job_table *table) {
  if (orphans->look_us == NEVER || monotonic_us() < orphans->look_us) return;
  orphans->look_us = children_kill(is_orphan, table) == 0 ? NEVER : monotonic_us() + PAUSE_US;
}
