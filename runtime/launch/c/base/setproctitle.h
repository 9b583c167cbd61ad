/*
 * The command line of a process and the mark in its environment, as /proc shows them.
 *
 * A forked launcher that never calls exec would look like the fork server: nobody could see which task it serves, and a
 * service that ends marked processes would miss it. So the fork server is started with spare room in both places, and each
 * launcher writes its own arguments and mark there. The init of a sandbox shows its task neither: they name paths of the host.
 */
#ifndef SETPROCTITLE_H
#define SETPROCTITLE_H

#include <stddef.h>

/* The environment variable that marks all processes of a task. */
#define MARK_NAME "TASKMILL_TASK"

/* Finds the room of this process: the command line that it was started with, and the value of the mark. To be called first. */
void setproctitle_find(char **argv, char **variables);

/* A copy of `argv`, for who goes on to use it: the room is overwritten. Null if there is no memory. */
char **setproctitle_copy(char **argv);

/* Writes as many arguments of `argv` as fit, without the program name, and the mark of `variables`. */
void setproctitle_show(char **argv, char **variables);

/* Leaves nothing of the command line but `name`. */
void setproctitle_hide(const char *name);

#endif
