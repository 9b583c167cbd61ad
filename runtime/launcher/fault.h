/*
 * What we could not do: a step of the set-up, and the system's errno. Never what the task did.
 *
 * The names are the vocabulary of `step` in the outcome file; classification has a remedy for each of them.
 */
#ifndef FAULT_H
#define FAULT_H

#include <errno.h>
#include <stdbool.h>

/* LAUNCH: the task could not be started. SANDBOX: it could have been, but not within the limits that were asked for. */
#define STEPS(X)                                                                                                       \
  X(NO_STEP, "none", LAUNCH)                                                                                           \
  X(STEP_DESCRIPTORS, "descriptors", LAUNCH)                                                                           \
  X(STEP_SUPERVISION, "supervision", LAUNCH)                                                                           \
  X(STEP_TASK_DIR, "task_dir", LAUNCH)                                                                                 \
  X(STEP_LOCK, "lock", LAUNCH)                                                                                         \
  X(STEP_OUTCOME, "outcome", LAUNCH)                                                                                   \
  X(STEP_KILL_PIPE, "kill_pipe", LAUNCH)                                                                               \
  X(STEP_LOGS, "logs", LAUNCH)                                                                                         \
  X(STEP_CGROUP_CREATE, "cgroup_create", SANDBOX)                                                                      \
  X(STEP_CGROUP_MEMORY, "cgroup_memory", SANDBOX)                                                                      \
  X(STEP_CGROUP_PIDS, "cgroup_pids", SANDBOX)                                                                          \
  X(STEP_CGROUP_JOIN, "cgroup_join", SANDBOX)                                                                          \
  X(STEP_FORK, "fork", LAUNCH)                                                                                         \
  X(STEP_STARTED, "started", LAUNCH)                                                                                   \
  X(STEP_SESSION, "session", LAUNCH)                                                                                   \
  X(STEP_STDIO, "stdio", LAUNCH)                                                                                       \
  X(STEP_LIMITS, "limits", SANDBOX)                                                                                    \
  X(STEP_WORKDIR, "workdir", LAUNCH)                                                                                   \
  X(STEP_EXEC, "exec", LAUNCH)

#define STEP_OF(step, name, voice) step,
enum step { STEPS(STEP_OF) };
#undef STEP_OF

struct fault {
  enum step step;
  int error;
};

static inline struct fault no_fault(void) { return (struct fault){NO_STEP, 0}; }

/* The fault of the system call that just failed. */
static inline struct fault fault_at(enum step step) { return (struct fault){step, errno}; }

static inline bool is_fault(struct fault fault) { return fault.step != NO_STEP; }

const char *step_name(enum step step);

bool is_sandbox_step(enum step step);

#endif
