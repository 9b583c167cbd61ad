/* One attempt, in a process of its own: one that dies or hangs does not stop the others. */
#ifndef RUN_H
#define RUN_H

#include "attempt.h"

/* Milliseconds that an attempt may take: hundreds of times what the slowest needs; a busy emulated machine needs a third. */
#define ATTEMPT_LIMIT_MS 60000

/* What is not proved to be blocked is open: so is an attempt that gives no answer. */
struct result attempt_run(const struct attempt *attempt, const struct baits *baits);

#endif
