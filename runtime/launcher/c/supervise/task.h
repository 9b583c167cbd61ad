/*
 * The task's own process, from fork to exec.
 *
 * It is born without anybody knowing of it, and must not run before it is written down who it is. There are two ways.
 *
 * With a sandbox, which takes a while to set up and can hang there, the child is a copy of us. It sets itself up, then
 * waits for a word on one pipe; the parent writes down who it is, then gives the word. On the other pipe, closed by exec,
 * the child says what it could not do: silence and the end of the file mean that the program runs. Should the parent die
 * in between, the child reads the end of the first pipe and ends too.
 *
 * Without one it borrows our memory until it is the program (vfork), while we wait: it writes down itself who it is, and
 * leaves in that memory what it could not do. Nothing is copied, no pipe is needed, and nobody waits for anybody to be
 * given a processor: 0.1 ms of 0.5 less.
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
  /* Of our child: the task, or the init of its namespace. ABSENT where there is none. */
  pid_t pid;
  /* Of the task itself. */
  pid_t main_pid;
  /* It was not there at this time, in clock ticks since boot. */
  int64_t not_before;
  /* Of the words of the init; ABSENT where there is none. */
  int init_fd;
  /* Of the two pipes; ABSENT where there are none. */
  int go_fd;
  /* ABSENT once it was read to its end. */
  int fault_fd;
  /* Only then there is a task, and its record. */
  bool is_set_up;
  /* Why there is none yet: an end was asked for while its sandbox was set up, or its wall time is over. */
  enum reason asked;
  /* Of a child that borrowed our memory: why it is not the program; none when it is. */
  struct fault fault;
};

/* Everything the child needs from before its birth. */
struct task_setup {
  const struct arguments *arguments;
  const struct task_dir *dir;
  const struct cgroup *cgroup;
  const struct sandbox *sandbox;
};

/*
 * Makes the process, and writes down who it is. It runs at once where it `may_borrow` our memory and needs no sandbox;
 * otherwise it waits for the word. A fault means that there is none, or will be none: `task->pid` is ABSENT, or is to be
 * waited for. A set-up that is to end has no fault: it is ended as a task is.
 */
struct fault task_start(struct task *task, const struct task_setup *setup, bool may_borrow, struct identity *identity,
                        struct record *record);

/* Lets a child that waits go on to exec. */
void task_go(struct task *task);

/* What the child said: a fault, or none when the program runs. To be called once `fault_fd` is readable. */
struct fault task_read_fault(struct task *task);

#endif
