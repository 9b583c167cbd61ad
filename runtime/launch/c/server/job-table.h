/*
 * The job table: requested launches, until serve has been told `gone`.
 *
 * Every request ends with one line `gone`, also if no launcher could be started. serve relies on it: if the pipe to serve is
 * full, the job stays here and is reported later. There are at most as many jobs as serve has slots.
 *
 * A launcher that exits in order has already reported how its task ended; `gone` then only frees memory in serve. So several
 * `gone` are sent together, and serve is not woken once more for each task.
 *
 * If a signal killed the launcher, `gone` waits until its orphans are gone (orphans.h): until then the task has not ended,
 * and no other launcher may start it. A process that hangs in the kernel delays it for a limited time.
 */
#ifndef JOB_TABLE_H
#define JOB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arguments.h"
#include "base/fault.h"

enum job_phase {
  /* Its launcher runs. */
  JOB_RUNNING,
  /* A signal killed its launcher. Orphans may be left. */
  JOB_DRAINING,
  /* The launcher could not start. serve must be told why, then `gone`. */
  JOB_FAILED,
  /* serve must be told `gone`. */
  JOB_ENDED,
};

struct job {
  enum job_phase phase;
  /* JOB_RUNNING: the launcher. */
  pid_t pid;
  /* JOB_FAILED. */
  struct fault fault;
  /* JOB_DRAINING and JOB_ENDED: wait status of the launcher. */
  int status;
  /* JOB_DRAINING: when to stop waiting. JOB_FAILED, JOB_ENDED: when to tell serve. Monotonic clock. */
  int64_t due_us;
  /* Number of the launch, from the request. */
  uint32_t launch;
  char task_id[MAX_TASK_ID_BYTES + 1];
};

struct job_table {
  int notify_fd;
  struct job *jobs;
  size_t count;
  size_t size;
};

/* Makes room for one more job. False without memory. */
bool job_table_make_room(struct job_table *table);

/* Adds a forked launcher. */
void job_table_add(struct job_table *table, const struct arguments *arguments, uint32_t launch, pid_t pid);

/* Adds a launch that failed. Without a fault, serve is told only `gone`. */
void job_table_add_failed(struct job_table *table, const struct arguments *arguments, uint32_t launch, struct fault fault);

/* Whether the child `pid` is a launcher. */
bool job_table_has_launcher(const struct job_table *table, pid_t pid);

/* Records the end of a child. True if it was a launcher that exited by itself, which leaves no orphans. */
bool job_table_note_end(struct job_table *table, pid_t pid, int status);

/* Ends the draining of all jobs if no orphan is left, else of jobs past their time. */
void job_table_end_draining(struct job_table *table, bool is_nothing_left);

/* When draining is given up, or serve must be told; NEVER without such a job. Monotonic clock. */
int64_t job_table_drained_us(const struct job_table *table);
int64_t job_table_tell_us(const struct job_table *table);

/* Tells serve of all jobs that failed or ended. False if the pipe fills up first. */
bool job_table_tell(struct job_table *table);

#endif
