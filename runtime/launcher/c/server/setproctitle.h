/*
 * The command line of a process and the mark in its environment, as /proc shows them.
 *
 * A forked launcher that never calls exec would look like the fork server: nobody could see which task it serves, and a
 * service that ends marked processes would miss it. So the fork server is started with spare room in both places, and each
 * launcher writes its own arguments and mark there.
 */
#ifndef SETPROCTITLE_H
#define SETPROCTITLE_H

#include <stddef.h>

/* The environment variable that marks all processes of a task. */
#define MARK_NAME "TASKMILL_TASK"

/* Memory that /proc shows. Null if there is none. */
struct setproctitle {
  char *arguments;
  size_t arguments_bytes;
  char *mark;
  size_t mark_bytes;
};

/* Finds the room: the arguments after the program name, and the value of the mark. */
void setproctitle_find(struct setproctitle *title, char **argv, char **variables);

/* Writes as many arguments of `argv` as fit, without the program name, and the mark of `variables`. */
void setproctitle_show(const struct setproctitle *title, char **argv, char **variables);

#endif
