/* Signals of the launcher and of the task. Whoever started the launcher may have ignored or blocked some of them. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "supervise/outcome.h"

/* Resets every signal to its default action. fork and exec keep that. */
void signals_by_default(void);

/* A kill request of serve, sent through a pidfd after serve verified the lock of the task (launcher-files.ts). */
#define SIGNAL_OF_KILL SIGUSR2

/* Consumes a pending kill request. False without one. */
bool signals_take_kill(void);

/* Reads all pending signals. Returns REASON_KILL for a kill request, else REASON_TERMINATED or REASON_NONE. */
enum reason signals_heed(int signal_fd);

/* A signalfd for signals_heed, without SIGCHLD. The signals are blocked. ABSENT with errno. */
int signals_of_end(void);

/* Blocks all signals. Returns a signalfd of those that a launcher handles, or ABSENT with errno. */
int signals_watch(void);

/* Unblocks all signals: in the task, just before exec. */
void signals_unblock(void);

#endif
