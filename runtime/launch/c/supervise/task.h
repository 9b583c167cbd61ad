/*
 * The task's own process, from fork to exec.
 *
 * The program must not run before its process is on record. So the child sets itself up and waits for a byte on one pipe;
 * the parent writes the record, then the byte. On the other pipe, which exec closes, the child reports what failed: its end
 * without a fault means that the program runs. If the parent dies meanwhile, the first pipe ends, and the child exits.
 */
#ifndef TASK_H
#define TASK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/arguments.h"
#include "base/fault.h"
#include "base/identity.h"
#include "sandbox/cgroup.h"
#include "sandbox/sandbox.h"
#include "supervise/outcome.h"
#include "supervise/task-dir.h"

struct task {
  /* Our child: the task, or the init of its namespace. ABSENT without one. */
  pid_t pid;
  /* The task itself. */
  pid_t main_pid;
  /* Our other child (forwarder.h); ABSENT without one. */
  pid_t forwarder_pid;
  /* A time before its fork, in clock ticks since boot. */
  int64_t not_before;
  /* When its time limits began: before its fork. Monotonic clock. */
  int64_t started_us;
  /* Socket of the init; ABSENT without one. */
  int init_fd;
  /* Our ends of the two pipes. */
  int go_fd;
  /* ABSENT after it was read. */
  int fault_fd;
  /* The task was forked. */
  bool is_set_up;
  /* Why the set-up was not awaited: an end was requested meanwhile, or the wall time is over. */
  enum reason asked;
};

/* What the child inherits. */
struct task_setup {
  const struct arguments *arguments;
  const struct task_dir *dir;
  const struct cgroup *cgroup;
  const struct sandbox *sandbox;
};

/*
 * Makes the process and writes its record. The process waits for task_go. After a fault `task->pid` is ABSENT, or a process
 * that has to be reaped. A set-up that was asked to end has no fault: it is ended as a task is.
 */
struct fault task_start(struct task *task, const struct task_setup *setup, struct identity *identity, struct record *record);

/* Lets the child go on to exec. */
void task_go(struct task *task);

/* Reads the fault of the child, or none if the program runs. To be called when `fault_fd` is readable. */
struct fault task_read_fault(struct task *task);

#endif
