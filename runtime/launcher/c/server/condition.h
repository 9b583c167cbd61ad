/*
 * What others can change of a process from outside, and what its children have from it: priorities, processors, limits,
 * control groups, how soon it is killed for want of memory.
 *
 * A task of the profile `process` has the user of its launcher and knows its pid. So a launcher notes the condition that it
 * was forked in, and looks after each such task whether it is in that still.
 */
#ifndef CONDITION_H
#define CONDITION_H

#include <stdbool.h>

struct condition {
  /* Of our own files in /proc, kept open, which halves the price of a look. The second is not there on every kernel. */
  int oom_fd;
  int groups_fd;
  bool is_noted;
};

/* Notes the present one, the only one in a process. One that cannot be read never holds. */
void condition_note(struct condition *condition);

/* Whether it is as it was noted. */
bool condition_holds(const struct condition *condition);

#endif
