#include "server/condition.h"

#include <fcntl.h>
#include <linux/sched/types.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Processors of the largest machines that there are. */
#define MAX_PROCESSORS 8192

#define MAX_OOM_BYTES 16
/* A line for each hierarchy. */
#define MAX_GROUPS_BYTES 4096

/* ioprio_get(): of the calling process. */
#define IOPRIO_WHO_PROCESS 1

struct snapshot {
  struct sched_attr schedule;
  unsigned char processors[MAX_PROCESSORS / 8];
  struct rlimit limits[RLIM_NLIMITS];
  long io_priority;
  long timer_slack;
  char oom[MAX_OOM_BYTES];
  char groups[MAX_GROUPS_BYTES];
};

static struct snapshot noted;

/* The whole file, and room left: what may be cut off cannot be compared. */
static bool read_from_start(int fd, char *buffer, size_t size) {
  ssize_t got = pread(fd, buffer, size, 0);
  return got > 0 && (size_t)got < size;
}

static bool has_groups(const struct condition *condition) { return condition->groups_fd >= 0; }

/* By the system calls: the C library does not have them, or not in full. */
static bool look(const struct condition *condition, struct snapshot *snapshot) {
  memset(snapshot, 0, sizeof *snapshot); /* gaps are compared as well */
  for (int i = 0; i < RLIM_NLIMITS; i++)
    if (getrlimit(i, &snapshot->limits[i]) != 0) return false;
  snapshot->io_priority = syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
  snapshot->timer_slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  return syscall(SYS_sched_getattr, 0, &snapshot->schedule, sizeof snapshot->schedule, 0) == 0 &&
         syscall(SYS_sched_getaffinity, 0, sizeof snapshot->processors, snapshot->processors) > 0 &&
         read_from_start(condition->oom_fd, snapshot->oom, sizeof snapshot->oom) &&
         (!has_groups(condition) || read_from_start(condition->groups_fd, snapshot->groups, sizeof snapshot->groups));
}

void condition_note(struct condition *condition) {
  condition->oom_fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
  condition->groups_fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
  condition->is_noted = look(condition, &noted);
}

bool condition_holds(const struct condition *condition) {
  static struct snapshot present;
  return condition->is_noted && look(condition, &present) && memcmp(&present, &noted, sizeof noted) == 0;
}
