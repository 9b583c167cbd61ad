/* The monotonic clock for limits and durations, and the wall clock for people. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

/* Later than any time. */
#define NEVER INT64_MAX
#define US_PER_MS 1000
#define US_PER_SEC 1000000
#define NS_PER_SEC 1000000000
/* The kernel's USER_HZ, the same on every machine that we are built for. */
#define TICKS_PER_SEC 100

static inline int64_t monotonic_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * US_PER_SEC + now.tv_nsec / 1000;
}

/* Hundredths of a second since boot, as in /proc. */
static inline int64_t boot_ticks(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (int64_t)now.tv_sec * TICKS_PER_SEC + now.tv_nsec / (1000000000 / TICKS_PER_SEC);
}

/* Milliseconds since 1970. */
static inline int64_t epoch_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* For poll(): milliseconds until a time of the monotonic clock, rounded up; -1 for NEVER. */
static inline int ms_until(int64_t us) {
  if (us == NEVER) return -1;
  int64_t left_us = us - monotonic_us();
  return left_us <= 0 ? 0 : (int)(left_us / US_PER_MS) + 1;
}

/* Negative times become 0. */
static inline struct timespec timespec_of_us(int64_t us) {
  if (us < 0) us = 0;
  return (struct timespec){.tv_sec = (time_t)(us / US_PER_SEC), .tv_nsec = (long)(us % US_PER_SEC) * 1000};
}

#endif
