/*
 * The cgroups of one task: created before it starts, joined by it before exec, removed after its end.
 *
 * Version 2 has one directory, version 1 one for each controller, either of which may be missing. The launcher never joins, so
 * limits and figures cover the task alone. Without a cgroup, all functions do nothing.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arguments.h"
#include "base/fault.h"
#include "base/pids.h"

struct cgroup {
  bool is_v2;
  const char *pids_path;
  const char *memory_path;
  /* ABSENT without such a cgroup. Equal in version 2. */
  int pids_fd;
  int memory_fd;
};

struct cgroup_usage {
  /* ABSENT without a memory cgroup, or if the kernel does not report it (version 2 before Linux 5.19). */
  int64_t memory_peak_bytes;
  int64_t oom_kills;
};

/*
 * Creates the cgroups and sets their limits. The parents exist and have their controllers enabled. pids_max is raised by
 * `own_processes`: an init, a forwarder.
 */
struct fault cgroup_create(struct cgroup *cgroup, const struct arguments *arguments, int own_processes);

/* Whether the task has a cgroup. */
bool cgroup_is_there(const struct cgroup *cgroup);

/* The cgroup for CLONE_INTO_CGROUP, or ABSENT: then the child has to join. */
int cgroup_birth_fd(const struct cgroup *cgroup);

/* Moves the caller into the cgroups. */
struct fault cgroup_join(const struct cgroup *cgroup);

/* Visits the id of every thread of every member. */
void cgroup_each_thread(const struct cgroup *cgroup, pid_visitor *visit, void *context);

/* Signals every member. False if `main_pid` is none: it may have left the cgroup. */
bool cgroup_signal(const struct cgroup *cgroup, int signal, pid_t main_pid);

/* Forbids new processes and kills every member. */
void cgroup_kill(const struct cgroup *cgroup);

struct cgroup_usage cgroup_read(const struct cgroup *cgroup);

/* False if a cgroup has members or cgroups in it and cannot be removed. */
bool cgroup_remove(const struct cgroup *cgroup);

#endif
