/*
 * An attempt to get out of a sandbox, and how it came out.
 *
 * An attempt is harmless where it succeeds: it opens and does not write, changes only what it made itself or what belongs
 * to its own process, sets what is set already, and takes back at once what it did. What it needs of the host it finds
 * among the baits (baits.h), never among what is really there.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "baits.h"

enum verdict { BLOCKED, OPEN, NOT_APPLICABLE };

/* Bytes of the longest explanation. */
#define DETAIL_BYTES 200

struct result {
  enum verdict verdict;
  char detail[DETAIL_BYTES];
};

struct attempt {
  const char *name;
  /* What it does, as in: it ... */
  const char *what;
  struct result (*run)(const struct baits *baits);
  /* Signals (1 << number) by which the attempt may end, and is blocked all the same. */
  unsigned long deadly_signals;
  /* Whether all of the sandbox may end by it: nobody else is to be there then. */
  bool is_alone;
};

struct attempts {
  const struct attempt *list;
  size_t count;
};

#define ATTEMPTS_OF(list) {(list), sizeof(list) / sizeof((list)[0])}

extern const struct attempts mount_attempts, namespace_attempts, cgroup_attempts, proc_attempts, file_attempts,
  write_attempts, process_attempts, identity_attempts, socket_attempts, kernel_attempts, abi_attempts, device_attempts,
  resource_attempts, network_attempts, proxy_attempts, secret_attempts;

struct result blocked(const char *how);
/* By the system, for the reason in errno. */
struct result refused(void);
struct result opened(const char *how);
struct result not_applicable(const char *why);

/* Of what a system call gave: open unless it is negative. */
struct result judged(long given);

/* Open with the first path that can be opened so; none of them is read or written. */
struct result any_opens(const char *const *paths, size_t count, int flags);

/* Whether PID 1 is the sandbox's own, so that it may be meddled with. */
bool has_own_init(void);

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

#endif
