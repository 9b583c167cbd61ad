/*
 * A hold: a task is set up while serve still makes its acceptance durable.
 *
 * The launcher of a held task does everything up to its record: it opens the logs, creates the cgroup and forks the child, which
 * sets itself up. Then it waits for a word. It has told nobody anything by then, not even a fault.
 *
 *   a byte   The acceptance is durable. The launcher goes on, and time limits begin.
 *   the end  The acceptance was refused, or serve or the fork server is gone. The launcher removes what it made and exits; its
 *            program has not run.
 *
 * Signals wait as well. The word comes through standard input, which is the end of a pipe of the fork server (job-table.h).
 */
#ifndef HOLD_H
#define HOLD_H

#include <stdbool.h>

struct hold {
  /* The word has not come yet. */
  bool is_waiting;
  bool is_discarded;
};

/* Waits for the word, if it has not come yet. False if the task must not start. */
bool hold_await(struct hold *hold);

#endif
