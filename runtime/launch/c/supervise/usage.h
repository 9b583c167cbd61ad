/* Resource usage of reaped processes, including those that they had reaped. */
#ifndef USAGE_H
#define USAGE_H

#include <stdint.h>
#include <sys/resource.h>

#include "base/clock.h"

struct usage {
  int64_t user_us;
  int64_t system_us;
  /* The largest of them. */
  int64_t max_rss_bytes;
};

static inline int64_t us_of(struct timeval time) { return (int64_t)time.tv_sec * US_PER_SEC + time.tv_usec; }

/* Usage of all processes that the caller has reaped. */
static inline struct usage usage_of_children(void) {
  struct rusage used;
  if (getrusage(RUSAGE_CHILDREN, &used) != 0) return (struct usage){0, 0, 0};
  return (struct usage){us_of(used.ru_utime), us_of(used.ru_stime), (int64_t)used.ru_maxrss * 1024};
}

static inline void usage_add(struct usage *sum, struct usage more) {
  sum->user_us += more.user_us;
  sum->system_us += more.system_us;
  if (more.max_rss_bytes > sum->max_rss_bytes) sum->max_rss_bytes = more.max_rss_bytes;
}

#endif
