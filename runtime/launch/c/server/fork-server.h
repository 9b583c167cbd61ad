/*
 * taskmill-launcher --fork-server: starts the launchers of a service.
 *
 * A fork costs more the larger the parent is, and serve has one thread for everything. So serve starts this small process
 * and writes launch requests to its standard input (inbox.h). The fork server forks; the child continues as a launcher.
 *
 * It also keeps network namespaces at hand (networks.h).
 *
 * Guarantees to serve:
 *
 *   lock        The fork server takes the lock of a task before it forks, and the launcher inherits it. If there is no fork
 *               server and the lock is free, no launcher of that task is on its way.
 *   gone        Every requested launch ends with one line `gone` (job-table.h). The launcher itself reports `started`,
 *               `ended` and `failed`, as far as it can.
 *   orphans     Processes that a killed launcher leaves behind are gone before its `gone` is sent (orphans.h), unless KILL
 *               does not end them within seconds (job-table.c).
 *   end of file serve is gone. The fork server launches what was requested and exits; its launchers live on. Until then it
 *               holds all inherited descriptors open, so the lock of the data directory keeps other services out.
 *   signals     Only KILL ends the fork server, so stopping serve also stops it.
 *
 * Launchers inherit its standard error.
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
