/*
 * What the service asks a fork server for, as it comes through a pipe: one launcher per request.
 *
 *   u32 bytes       of all that follows
 *   u32 launch      a number of the service's choice; it comes back with the end of the launcher
 *   u32 arguments   how many strings are arguments, without the name of the program (arguments.h)
 *   u32 variables   how many are variables, the whole environment of the task
 *   strings         the arguments, then the variables, each with a NUL at its end
 *
 * Numbers are little-endian. launch-request.ts writes it.
 *
 * Requests hold secrets of their tasks, so nothing of one is left in memory by those who are through with it: not behind
 * shorter ones that come later, nor where it was moved from, nor in a launcher that was forked for another.
 */
#ifndef INBOX_H
#define INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/*
 * Bytes of a request without its first number. The kernel takes 6 MiB for a program and its environment at most, pointers
 * included, so what does not fit could not be run. Above that a mistake would cost memory for nothing.
 */
#define MAX_REQUEST_BYTES (8 * 1024 * 1024)

struct request {
  /* As it came, the first number included. */
  const char *bytes;
  size_t length;
  uint32_t launch;
  /* As for execve; they point into the inbox. */
  char **argv;
  char **variables;
};

struct inbox {
  int fd;
  char *bytes;
  size_t size;
  /* From `at` to `length` there is what was read and not taken yet; before, what was taken and not wiped; nothing behind. */
  size_t at;
  size_t length;
};

enum inbox_state {
  /* Not yet. */
  INBOX_WAITS,
  INBOX_HAS_REQUEST,
  /* The service closed its end, or is gone. */
  INBOX_ENDED,
  /* It cannot go on, as the complaint says. */
  INBOX_BROKEN,
};

/* Reads what there is, once all requests before it were taken; waits if there is nothing. Never INBOX_HAS_REQUEST. */
enum inbox_state inbox_read(struct inbox *inbox, struct text *complaint);

/* The next whole request. It is valid until inbox_wipe, which is to be called before the next inbox_read. */
enum inbox_state inbox_take(struct inbox *inbox, struct request *request, struct text *complaint);

/* Lets go of a request that was dealt with. */
void inbox_wipe(struct inbox *inbox, struct request *request);

/* Lets go of those that were not taken yet: in a copy of us, which has the one that was taken last. */
void inbox_wipe_rest(struct inbox *inbox);

#endif
