/* Signals as a task gets them: whoever started us may have ignored some, and we block them all for ourselves. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Every signal does what it does by default. It stays so in all that we fork, and what a program is given. */
void signals_by_default(void);

/*
 * A request of our service to end the task. It is sent to a launcher that is known by its lock and by its record
 * (spawn.ts); one that has not come as far as its record has it pending.
 */
#define SIGNAL_OF_KILL SIGUSR2

/* Whether that was asked already. It is left to be read. */
bool signals_is_kill_asked(void);

/* None is blocked any more: for the task alone, just before it is the program. */
void signals_unblock(void);

#endif
