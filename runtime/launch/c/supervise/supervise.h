/* Waits for the end of a task, and ends it when its time or its output runs out. */
#ifndef SUPERVISE_H
#define SUPERVISE_H

#include "sandbox/cgroup.h"
#include "supervise/reaper.h"
#include "supervise/outcome.h"
#include "supervise/masked-logs.h"
#include "supervise/task.h"

struct supervision {
  const struct arguments *arguments;
  const struct task_dir *dir;
  const struct cgroup *cgroup;
  const struct identity *identity;
  struct task *task;
  struct masked_logs *logs;
  struct reaper *reaper;
  /* Why the task must end before its program starts: an end was requested before or during its set-up. */
  enum reason asked;
  /* Monotonic clock. */
  int64_t started_us;
};

/*
 * Starts the program and returns once the main process has ended or was given up, and nothing else of the task is left.
 * `signal_fd` comes from signals_watch.
 */
void supervise(struct supervision *supervision, int signal_fd, struct outcome *outcome);

#endif
