/*
 * taskmill-launcher --fork-server: the process that starts the launchers of a service.
 *
 * To start a process costs the parent a fork, and a large parent more than a small one. A service with one thread for
 * everything cannot afford that for each of its tasks, but it can write a few bytes into a pipe. So it starts one small
 * process, and asks that for launchers (inbox.h). The fork server forks, and the child goes on as a launcher: the code is
 * there already, and the memory shared.
 *
 * What a service may rely on:
 *
 *   the lock         of a task is taken before the fork and inherited. So whoever finds the fork server gone, and the lock
 *                    of a task free, knows that no launcher of that task is on its way
 *   gone             is told of every launcher that was asked for, once it has ended in whatever way (job-table.h). What goes
 *                    with it, `started`, `ended` and `failed`, the launchers say themselves, as far as they can
 *   orphans          of a task whose launcher was killed are gone before the end of that is told, and so is what they had
 *                    started (orphans.h); but for what KILL does not end within seconds (job-table.c)
 *   the end of file  means that the service is gone. What it had asked for is launched still, then the fork server ends; its
 *                    launchers live on. It keeps open whatever else it was given: with the lock of the service's
 *                    directory among that, no other service begins before
 *   signals          do not end it, but for KILL: who stops the service stops the fork server
 *
 * Its standard error is that of its launchers.
 */
#ifndef FORK_SERVER_H
#define FORK_SERVER_H

#include <stdbool.h>

#include "base/arguments.h"
#include "base/text.h"

/* Whether the command line asks for a fork server: `--fork-server NOTIFY_FD ROOM`; ROOM is overwritten (setproctitle.h). */
bool fork_server_is_wanted(char **argv);

/*
 * Returns true in each launcher that it forks, with what it is to do. False: it is over, with a sentence in `complaint`
 * unless all is well.
 */
bool fork_server_run(char **argv, struct arguments *arguments, struct text *complaint);

#endif
