/*
 * Launch requests, as serve writes them (launch-request.ts) into the pipe to its fork server.
 *
 *   u32 bytes       length of the rest
 *   u32 launch      number of the launch, chosen by serve; `gone` repeats it
 *   u32 arguments   number of arguments, without the program name (arguments.h)
 *   u32 variables   number of environment variables: the whole environment of the task
 *   strings         the arguments, then the variables, each ending with NUL
 *
 * Numbers are little-endian.
 *
 * Requests hold secrets of tasks. So a handled request is overwritten with zeros, wherever it was: behind shorter requests
 * that follow, at its place before a move, and in a launcher forked for another task.
 */
#ifndef INBOX_H
#define INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Limit for the length of a request. execve takes at most 6 MiB of arguments and environment, so a longer one cannot run. */
#define MAX_REQUEST_BYTES (8 * 1024 * 1024)

struct request {
  /* The raw request, from its first number. */
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
  /* Bytes from `at` to `length` were read but not taken. Bytes before `at` were taken but may not be wiped yet. */
  size_t at;
  size_t length;
};

enum inbox_state {
  /* No whole request yet. */
  INBOX_WAITS,
  INBOX_HAS_REQUEST,
  /* The service closed its end, or is gone. */
  INBOX_ENDED,
  /* An unusable request or a failed read; the complaint says which. */
  INBOX_BROKEN,
};

/* Reads once, blocking. To be called after all earlier requests were taken. Never returns INBOX_HAS_REQUEST. */
enum inbox_state inbox_read(struct inbox *inbox, struct text *complaint);

/* Takes the next whole request. It is valid until inbox_wipe, which must come before the next inbox_read. */
enum inbox_state inbox_take(struct inbox *inbox, struct request *request, struct text *complaint);

/* Wipes and frees a handled request. */
void inbox_wipe(struct inbox *inbox, struct request *request);

/* Wipes the requests that were not taken: in a forked launcher, which keeps only its own. */
void inbox_wipe_rest(struct inbox *inbox);

#endif
