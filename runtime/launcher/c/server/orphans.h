/*
 * Orphans: processes that a killed launcher leaves behind, which nobody owns any more.
 *
 * The fork server is a child subreaper, so they become its children. It knows every launcher from the fork until it has
 * reaped it (job-table.h); every other child of it is an orphan, and killed: when a launcher was ended by a signal, and each
 * time an orphan was reaped, as that may have had children of its own. So any tree goes, in as many rounds as it is deep.
 * The list of children may leave one out while others end, so after each round that found some there is another a moment
 * later.
 *
 * A process is never killed for what it is, only for whose child it is: orphans that wear no mark and belong to no cgroup
 * are found as well.
 */
#ifndef ORPHANS_H
#define ORPHANS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/job-table.h"

struct orphans {
  /* When they are to be looked for, on the monotonic clock; NEVER while there is no reason to. */
  int64_t look_us;
};

/* Kills all children that are no launchers, if it is time for that. */
void orphans_kill(struct orphans *orphans, const struct job_table *table);

#endif
