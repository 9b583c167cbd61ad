/* Signals as a task gets them: whoever started us may have ignored some, and we block them all for ourselves. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Every signal does what it does by default. It stays so in all that we fork, and what a program is given. */
void signals_by_default(void);

/*
 * A request of our service to end the task. It is sent to a launcher that is known by its lock and by its record
 * (spawn.ts). With it comes the pid of the task: when that has just ended, the launcher may have another one already.
 */
#define SIGNAL_OF_KILL SIGUSR2

/* Whether such a signal, as it came, means the task `pid`. One that names none means whatever task there is. */
bool signals_mean_task(int code, int value, pid_t pid);

/* Whether one is pending that means the task `pid`, or, without a task yet (0), the next one. It is taken. */
bool signals_take_kill(pid_t pid);

/* Forgets what came for a task that is no more. */
void signals_forget(int signal_fd);

/* None is blocked any more: for the task alone, just before it is the program. */
void signals_unblock(void);

#endif
