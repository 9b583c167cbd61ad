/*
 * A fault: the step of the set-up that failed, and its errno. Never something that the task did.
 *
 * The names are the values of `step` in the outcome file. runtime/launch/faults.ts explains each and has a remedy.
 */
#ifndef FAULT_H
#define FAULT_H

#include <errno.h>
#include <stdbool.h>

/* LAUNCH: the task could not be started. SANDBOX: its sandbox or limits could not be set up. */
#define STEPS(X)                                                                                                       \
  X(NO_STEP, "none", LAUNCH)                                                                                           \
  X(STEP_DESCRIPTORS, "descriptors", LAUNCH)                                                                           \
  X(STEP_SUPERVISION, "supervision", LAUNCH)                                                                           \
  X(STEP_TASK_DIR, "task_dir", LAUNCH)                                                                                 \
  X(STEP_LOCK, "lock", LAUNCH)                                                                                         \
  X(STEP_OUTCOME, "outcome", LAUNCH)                                                                                   \
  X(STEP_LOGS, "logs", LAUNCH)                                                                                         \
  X(STEP_MASKS, "masks", LAUNCH)                                                                                       \
  X(STEP_CGROUP_CREATE, "cgroup_create", SANDBOX)                                                                      \
  X(STEP_CGROUP_MEMORY, "cgroup_memory", SANDBOX)                                                                      \
  X(STEP_CGROUP_PIDS, "cgroup_pids", SANDBOX)                                                                          \
  X(STEP_CGROUP_JOIN, "cgroup_join", SANDBOX)                                                                          \
  X(STEP_NAMESPACES, "namespaces", SANDBOX)                                                                            \
  X(STEP_USER_NAMESPACE, "user_namespace", SANDBOX)                                                                    \
  X(STEP_USER_MAP, "user_map", SANDBOX)                                                                                \
  X(STEP_CGROUP_NAMESPACE, "cgroup_namespace", SANDBOX)                                                                \
  X(STEP_LOOPBACK, "loopback", SANDBOX)                                                                                \
  X(STEP_EGRESS, "egress", SANDBOX)                                                                                    \
  X(STEP_PROPAGATION, "propagation", SANDBOX)                                                                          \
  X(STEP_PLACES, "places", SANDBOX)                                                                                    \
  X(STEP_FREEZE, "freeze", SANDBOX)                                                                                    \
  X(STEP_SCAFFOLD, "scaffold", SANDBOX)                                                                                \
  X(STEP_DEVICES, "devices", SANDBOX)                                                                                  \
  X(STEP_PROC, "proc", SANDBOX)                                                                                        \
  X(STEP_TMP, "tmp", SANDBOX)                                                                                          \
  X(STEP_MASK, "mask", SANDBOX)                                                                                        \
  X(STEP_EXPOSE, "expose", SANDBOX)                                                                                    \
  X(STEP_WORKSPACE, "workspace", SANDBOX)                                                                              \
  X(STEP_SCRIPT, "script", SANDBOX)                                                                                    \
  X(STEP_ROOTFS, "rootfs", SANDBOX)                                                                                    \
  X(STEP_PIVOT, "pivot", SANDBOX)                                                                                      \
  X(STEP_SANDBOX_UID, "sandbox_uid", SANDBOX)                                                                          \
  X(STEP_PRIVILEGES, "privileges", SANDBOX)                                                                            \
  X(STEP_SECCOMP, "seccomp", SANDBOX)                                                                                  \
  X(STEP_INIT, "init", SANDBOX)                                                                                        \
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
  /* The failed entry of the list of mounts (mount-list.h), counted from 1; 0 if it was none. */
  int mount;
};

static inline struct fault no_fault(void) { return (struct fault){.step = NO_STEP}; }

/* The fault of the system call that just failed. */
static inline struct fault fault_at(enum step step) { return (struct fault){.step = step, .error = errno}; }

static inline bool is_fault(struct fault fault) { return fault.step != NO_STEP; }

const char *step_name(enum step step);

/* NO_STEP for an unknown name. */
enum step step_named(const char *name);

bool is_sandbox_step(enum step step);

/* Sends a fault through a pipe, from a child to its parent. The end of the pipe is received as no fault. */
void fault_send(int fd, struct fault fault);
struct fault fault_receive(int fd);

#endif
