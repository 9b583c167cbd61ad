/*
 * What others see of a process in /proc: its command line, and the mark in its environment.
 *
 * A launcher that was forked and never exec'd would look like the fork server: nobody could tell which task it serves, and a
 * service that ends what carries the mark of a task would not find its launcher. So a fork server is started with room in
 * both places, and each launcher writes there what it would have been started with.
 */
#ifndef SETPROCTITLE_H
#define SETPROCTITLE_H

#include <stddef.h>

/* The mark that all processes of a task carry: a variable. */
#define MARK_NAME "TASKMILL_TASK"

/* Two pieces of the memory that the kernel shows. Null where there is none. */
struct setproctitle {
  char *arguments;
  size_t arguments_bytes;
  char *mark;
  size_t mark_bytes;
};

/* Finds the room: the arguments after the name of the program, and the value of the mark. */
void setproctitle_find(struct setproctitle *title, char **argv, char **variables);

/* Shows as many of `argv` after the name as there is room for, and the mark of `variables`. */
void setproctitle_show(const struct setproctitle *title, char **argv, char **variables);

#endif
