/*
 * Children: processes that we forked, and orphans that we inherited as a child subreaper.
 *
 * The pid of a child is not reused before it is reaped, so signals by pid always reach the right process.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Selects children. */
typedef bool child_filter(pid_t pid, const void *context);

/*
 * Kills the selected children (all without a filter) and their process groups except our own. No such group may contain other
 * processes. Returns their number, including ended ones that were not reaped yet. Of very many, only the youngest are killed:
 * those may still be alive.
 */
int64_t children_kill(child_filter *is_meant, const void *context);

/* Counts the children. */
int64_t children_count(void);

/*
 * Reaps any child that has ended; with `may_wait`, waits for one. Returns its pid, 0 if none has ended, -1 without children.
 * A child that stopped because it asked to be traced by us is continued.
 */
pid_t child_reap(int *status, bool may_wait);

#endif
