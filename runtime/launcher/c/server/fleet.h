/*
 * The launches that a fork server was asked for, until the service knows of their end.
 *
 * Every request is answered by one line `gone`, also when there could be no launcher. A service that hears of it may rely
 * on that, so it is never lost: when the pipe to the service is full, it is kept here and sent later. There are as many at
 * a time as the service has slots for running tasks.
 *
 * A launcher that ended in order has said itself how its task ended. Then the line only lets the service forget it: it
 * waits for others, so that the service is not woken once more for each task.
 *
 * Of one that was killed the line is held until what it left behind is gone (orphans.h), for until then the task has not
 * ended, and no other launcher may begin with it. What hangs in the kernel does not hold it for ever.
 */
#ifndef FLEET_H
#define FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arguments.h"
#include "base/fault.h"

struct member;

struct fleet {
  int notify_fd;
  struct member *members;
  size_t count;
  size_t size;
  /* Members that have ended, and the service was not told. */
  size_t untold;
  /* When it is to be told, on the monotonic clock, while there are such. */
  int64_t tell_at_us;
  /* Members that were killed, and may have left something. */
  size_t held;
};

/* Makes sure that one more can be added. False without memory. */
bool fleet_make_room(struct fleet *fleet);

/* A launcher that was forked for it. */
void fleet_add(struct fleet *fleet, const struct arguments *arguments, uint32_t launch, pid_t pid);

/* A launcher that could not be started. Without a fault the service hears only that the launcher is gone. */
void fleet_add_failed(struct fleet *fleet, const struct arguments *arguments, uint32_t launch, struct fault fault);

/* What is known of the end of a launcher, as wait() gave it. */
void fleet_end(struct fleet *fleet, pid_t pid, int status);

/* Lets those be told that were held: all of them when nothing is left behind by any, otherwise those held for too long. */
void fleet_release(struct fleet *fleet, bool is_nothing_left);

/* Milliseconds until one will have been held for too long: 0 for now, -1 for never. */
int fleet_release_in_ms(const struct fleet *fleet);

/* Milliseconds until there is something to tell: 0 for now, -1 for never. */
int fleet_tell_in_ms(const struct fleet *fleet);

/* Tells the service of all that have ended, as far as its pipe has room. */
void fleet_tell(struct fleet *fleet);

#endif
