/* From the first moment of a task to its last. */
#ifndef SUPERVISE_H
#define SUPERVISE_H

#include "sandbox/cgroup.h"
#include "supervise/reaper.h"
#include "supervise/outcome.h"
#include "supervise/task.h"

struct supervision {
  const struct arguments *arguments;
  const struct task_dir *dir;
  const struct cgroup *cgroup;
  const struct identity *identity;
  struct task *task;
  struct reaper *reaper;
  /* Why the task is to end that has not begun: an end was asked for before it was made, or while it was. */
  enum reason asked;
  /* Of the monotonic clock. */
  int64_t started_us;
};

/* `signal_fd` is of signals_watch. Lets the task run, and returns when its main process has ended or been given up, and nothing of it is left. */
void supervise(struct supervision *supervision, int signal_fd, struct outcome *outcome);

#endif
