/*
 * The task's own process, from fork to exec.
 *
 * It is born without anybody knowing of it, and must not run before somebody could end it. So the child sets itself up,
 * then waits for a word on one pipe; the parent writes down who it is, then gives the word. On the other pipe, closed
 * by exec, the child says what it could not do: silence and the end of the file mean that the program runs. Should the
 * parent die in between, the child reads the end of the first pipe and ends too.
 */
#ifndef TASK_H
#define TASK_H

#include <stdbool.h>
#include <sys/types.h>

#include "arguments.h"
#include "cgroup.h"
#include "fault.h"
#include "sandbox.h"
#include "task-dir.h"

struct task {
  /* Of our child: the task, or the init of its namespace. */
  pid_t pid;
  /* Of the task itself. */
  pid_t main_pid;
  /* Of the words of the init; ABSENT where there is none. */
  int init_fd;
  int go_fd;
  /* ABSENT once it was read to its end. */
  int fault_fd;
};

/* Everything the child needs from before its birth. */
struct task_setup {
  const struct arguments *arguments;
  const struct task_dir *dir;
  const struct cgroup *group;
  const struct sandbox *sandbox;
};

struct fault task_fork(struct task *task, const struct task_setup *setup);

/* Lets the child go on to exec. */
void task_go(struct task *task);

/* Lets the child end before exec instead. */
void task_never_mind(struct task *task);

/* What the child said: a fault, or none when the program runs. To be called once `fault_fd` is readable. */
struct fault task_read_fault(struct task *task);

#endif
