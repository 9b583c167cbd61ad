/*
 * What a launcher that was killed leaves behind: processes of its task that are nobody's any more.
 *
 * The fork server is a child subreaper, so they become its children. It knows every launcher from the fork until it has reaped
 * it; whatever else is a child of it is such an orphan, and killed: when a launcher was ended by a signal, and each time an
 * orphan was reaped, as that may have had children of its own. So any tree goes, in as many rounds as it is deep. The list
 * of children may leave one out while others end, so after each round that found some there is another a moment later.
 *
 * A process is never killed for what it is, only for whose child it is: orphans that wear no mark and belong to no cgroup
 * are found as well.
 */
#ifndef ORPHANS_H
#define ORPHANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct orphans {
  /* Launchers that were forked and not reaped. */
  pid_t *launchers;
  size_t count;
  size_t size;
  /* On the monotonic clock; INT64_MAX while there is no reason to look for any. */
  int64_t look_at_us;
};

/* Makes us the reaper. To be called before the first launcher is forked. False with errno. */
bool orphans_found(struct orphans *orphans);

/* Makes sure that one more launcher can be added. False without memory. */
bool orphans_make_room(struct orphans *orphans);

/* One that was forked: it is none. */
void orphans_add_launcher(struct orphans *orphans, pid_t pid);

/* A child of any kind has ended, as wait() gave it, and was reaped. */
void orphans_note_end(struct orphans *orphans, pid_t pid, int status);

/* Whether there are none, as far as the last look and all ends since then say. */
bool orphans_are_gone(const struct orphans *orphans);

/* Milliseconds until orphans are to be killed, should there be any: 0 for now, -1 for never. */
int orphans_look_in_ms(const struct orphans *orphans);

/* Kills them, if it is time for that. */
void orphans_kill(struct orphans *orphans);

#endif
