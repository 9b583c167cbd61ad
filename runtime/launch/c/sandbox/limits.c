#include "sandbox/limits.h"

#include <sys/resource.h>

/* The usual soft limit. That of the service may be higher, which is bad for programs that walk all descriptors or use select(). */
#define OPEN_FILES 1024

/*
 * No core dumps: they contain the secrets of a task. With a pipe in kernel.core_pattern, the kernel passes the memory to a
 * root process outside of any sandbox, whatever the limit is, except for 1.
 */
#define CORE_BYTES 1

/* Seconds between SIGXCPU, which a task may handle, and KILL. */
#define CPU_GRACE_SEC 1

static bool set_limit(int resource, rlim_t soft, rlim_t hard) {
  struct rlimit limit = {soft, hard};
  return setrlimit(resource, &limit) == 0;
}

/* Never above our own limit: only root could raise it. */
static bool lower_limit(int resource, rlim_t soft, rlim_t hard) {
  struct rlimit have;
  if (getrlimit(resource, &have) != 0) return false;
  return set_limit(resource, soft < have.rlim_max ? soft : have.rlim_max, hard < have.rlim_max ? hard : have.rlim_max);
}

struct fault limits_apply(const struct arguments *arguments) {
  if (!lower_limit(RLIMIT_NOFILE, OPEN_FILES, RLIM_INFINITY)) return fault_at(STEP_LIMITS);
  if (!lower_limit(RLIMIT_CORE, CORE_BYTES, CORE_BYTES)) return fault_at(STEP_LIMITS);
  if (arguments->cpu_time_sec != ABSENT) {
    rlim_t seconds = (rlim_t)arguments->cpu_time_sec;
    if (!lower_limit(RLIMIT_CPU, seconds, seconds + CPU_GRACE_SEC)) return fault_at(STEP_LIMITS);
  }
  if (arguments->address_space_bytes != ABSENT) {
    rlim_t bytes = (rlim_t)arguments->address_space_bytes;
    if (!lower_limit(RLIMIT_AS, bytes, bytes)) return fault_at(STEP_LIMITS);
  }
  return no_fault();
}
