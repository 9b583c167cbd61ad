/* Signals as a task gets them: whoever started us may have ignored some, and we block them all for ourselves. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "supervise/outcome.h"

/* Every signal does what it does by default. It stays so in all that we fork, and what a program is given. */
void signals_by_default(void);

/* A request of our service to end the task, sent through a pidfd once serve has verified the lock of the task (launcher-files.ts). */
#define SIGNAL_OF_KILL SIGUSR2

/* Whether one is pending. It is taken. */
bool signals_take_kill(void);

/*
 * Reads what has come. Why the task is to end: because our service asks for it, which counts first, or because somebody
 * else ends us; or no reason.
 */
enum reason signals_heed(int signal_fd);

/* A descriptor for signals_heed, of signals that are blocked: all but those of children. ABSENT with errno. */
int signals_of_end(void);

/*
 * Blocks all signals, so that only KILL and our own faults end us. Returns a descriptor of those that a launcher heeds, or
 * ABSENT with errno.
 */
int signals_watch(void);

/* None is blocked any more: for the task alone, just before it is the program. */
void signals_unblock(void);

#endif
