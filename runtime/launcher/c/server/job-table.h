/*
 * The job table: the launches that a fork server was asked for, until the service knows of their end.
 *
 * Each request ends with one line `gone`, also when there could be no launcher. A service that hears of it may rely on
 * that, so the line is never lost: when the pipe to the service is full, the job stays here and is told later. There are
 * as many jobs at a time as the service has slots for running tasks.
 *
 * A launcher that ended in order has said itself how its task ended. Then `gone` only lets the service forget the launcher,
 * so it waits for others: the service is not woken once more for each task.
 *
 * `gone` of a launcher that was killed waits until what that left behind is gone (orphans.h), for until then the task has
 * not ended, and no other launcher may begin with it. A process that hangs in the kernel does not delay it for ever.
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
  /* A signal killed its launcher, which may have left processes behind. */
  JOB_DRAINING,
  /* There was no launcher; the service is to be told why, then `gone`. */
  JOB_FAILED,
  /* The service is to be told `gone`. */
  JOB_ENDED,
};

struct job {
  enum job_phase phase;
  /* JOB_RUNNING: the launcher. */
  pid_t pid;
  /* JOB_FAILED. */
  struct fault fault;
  /* JOB_DRAINING and JOB_ENDED: of the launcher, as wait() gave it. */
  int status;
  /* JOB_DRAINING: how long it may take. JOB_FAILED, JOB_ENDED: when the service is to be told. On the monotonic clock. */
  int64_t due_us;
  /* The service's number of the launch. */
  uint32_t launch;
  char task_id[MAX_TASK_ID_BYTES + 1];
};

struct job_table {
  int notify_fd;
  struct job *jobs;
  size_t count;
  size_t size;
};

/* Makes sure that one more can be added. False without memory. */
bool job_table_make_room(struct job_table *table);

/* A launcher that was forked. */
void job_table_add(struct job_table *table, const struct arguments *arguments, uint32_t launch, pid_t pid);

/* A launcher that could not be started. Without a fault the service hears only `gone`. */
void job_table_add_failed(struct job_table *table, const struct arguments *arguments, uint32_t launch, struct fault fault);

/* Whether a child is a launcher. */
bool job_table_has_launcher(const struct job_table *table, pid_t pid);

/* The end of a child, as wait() gave it. True when that was a launcher which ended by itself: it leaves nothing behind. */
bool job_table_note_end(struct job_table *table, pid_t pid, int status);

/* Ends the draining of all jobs if `is_nothing_left` by any, otherwise of those that have drained for too long. */
void job_table_end_draining(struct job_table *table, bool is_nothing_left);

/* On the monotonic clock: when draining takes too long, or the service is to be told; NEVER where there is no such job. */
int64_t job_table_drained_us(const struct job_table *table);
int64_t job_table_tell_us(const struct job_table *table);

/* Tells the service of all jobs that have failed or ended. False when its pipe is full before that. */
bool job_table_tell(struct job_table *table);

#endif
