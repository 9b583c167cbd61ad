#include "sandbox/limits.h"

#include <sys/resource.h>

/*
 * What login shells and service managers give. Whoever starts us may have raised its own soft limit, and programs that
 * walk all possible descriptors, or use select(), suffer from a large one.
 */
#define OPEN_FILES 1024

/*
 * The memory of a task holds its secrets; a file of it in a workspace is nobody's wish. Nor is it that of the program which
 * the host may have to take care of cores (kernel.core_pattern with a pipe), as root and outside of any sandbox: to that
 * the kernel pipes the memory whatever the limit is, except when it is 1.
 */
#define CORE_BYTES 1

/* Seconds between SIGXCPU, which a task may handle, and KILL. */
#define CPU_GRACE_SEC 1

static bool set_limit(int resource, rlim_t soft, rlim_t hard) {
  struct rlimit limit = {soft, hard};
  return setrlimit(resource, &limit) == 0;
}

/* Never above what we have ourselves: only root could. */
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
