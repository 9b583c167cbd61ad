/*
 * Orphans: processes whose launcher was killed.
 *
 * The fork server is a child subreaper, so orphans become its children. It knows all its launchers (job-table.h); every
 * other child is an orphan and is killed: whenever a signal ended a launcher, and whenever an orphan was reaped, because that
 * one may have had children. So any process tree goes, in as many rounds as it is deep. The kernel's list of children may
 * miss one while others exit, so each round that found some is followed by another.
 *
 * A process is killed only because of its parent. So orphans without a mark and outside of any cgroup are found, too.
 */
#ifndef ORPHANS_H
#define ORPHANS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/job-table.h"

struct orphans {
  /* When to look for orphans, on the monotonic clock; NEVER without a reason. */
  int64_t look_us;
};

/* Kills all children that are no launchers, if a look is due. */
void orphans_kill(struct orphans *orphans, const struct job_table *table);

#endif
