/*
 * Our children: those that we have made, and those that a subreaper was left with when their parents ended.
 *
 * A pid of a child is nobody else's before we have reaped it, so whatever is done here meets a child of ours.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which of them are meant. */
typedef bool child_filter(pid_t pid, const void *context);

/*
 * Kills those that are meant, all of them without a filter, and their groups but for our own: none may hold anybody else.
 * Returns how many there are, those included that have ended and were not reaped yet. Of very many the youngest are killed,
 * which are the ones that may still be alive.
 */
int64_t children_kill(child_filter *is_meant, const void *context);

/* Counts what is there, without doing anything about it. */
int64_t children_count(void);

/*
 * Reaps a child that has ended, any that there is, and waits for that if `may_wait`. Returns its pid; 0 when none has ended,
 * -1 when there is none. One that has stopped because it wants to be traced by us goes on.
 */
pid_t child_reap(int *status, bool may_wait);

#endif
