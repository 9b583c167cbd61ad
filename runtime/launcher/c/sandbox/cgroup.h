/*
 * The control groups of one task: made before it starts, joined by it before exec, gone when it is.
 *
 * Version 2 has one directory for everything, version 1 one per controller; either of those may be missing. The
 * launcher never joins, so that limits and figures are the task's alone. Without a cgroup every verb does nothing.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arguments.h"
#include "base/fault.h"

struct cgroup {
  bool is_v2;
  const char *pids_path;
  const char *memory_path;
  /* ABSENT where there is no such cgroup. The same in version 2. */
  int pids_fd;
  int memory_fd;
};

struct cgroup_usage {
  /* ABSENT without a memory cgroup, or where the kernel does not say (before 5.19 in version 2). */
  int64_t memory_peak_bytes;
  int64_t oom_kills;
};

/*
 * Makes the groups and sets their limits. The parents exist and have the controllers enabled. `own_processes` of ours are
 * in them and not counted: an init.
 */
struct fault cgroup_create(struct cgroup *cgroup, const struct arguments *arguments, int own_processes);

/* Whether there is any. */
bool cgroup_is_there(const struct cgroup *cgroup);

/* The cgroup that a child can be born into, or ABSENT: then it has to join. */
int cgroup_birth_fd(const struct cgroup *cgroup);

/* Moves the calling process in. */
struct fault cgroup_join(const struct cgroup *cgroup);

/* Signals every member. False when `main_pid` is not among them: it may have moved itself out. */
bool cgroup_signal(const struct cgroup *cgroup, int signal, pid_t main_pid);

/* No new member from now on, and KILL to every one there is. */
void cgroup_kill(const struct cgroup *cgroup);

struct cgroup_usage cgroup_read(const struct cgroup *cgroup);

/* False when a cgroup would not go: it has members or cgroups of its own. */
bool cgroup_remove(const struct cgroup *cgroup);

#endif
