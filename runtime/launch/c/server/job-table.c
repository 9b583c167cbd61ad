#include "server/job-table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "supervise/notify.h"
#include "supervise/outcome.h"

/* Jobs for which there is room at the beginning. */
#define FIRST_SIZE 64

/* How long, and with how many others, `gone` of a launcher that exited in order waits. */
#define GATHER_US 20000
#define GATHERED_AT_ONCE 64

/* Longest draining. An orphan that is alive then hangs in the kernel. */
#define MAX_DRAINING_US 5000000

/* Of a launcher that ended in order, as wait() gives it. */
#define STATUS_NOT_STARTED (EXIT_NOT_STARTED << 8)

bool job_table_make_room(struct job_table *table) {
  if (table->count < table->size) return true;
  size_t size = table->size == 0 ? FIRST_SIZE : table->size * 2;
  struct job *jobs = realloc(table->jobs, size * sizeof *jobs);
  if (jobs == NULL) return false;
  table->jobs = jobs;
  table->size = size;
  return true;
}

static struct job *add(struct job_table *table, const struct arguments *arguments, uint32_t launch, enum job_phase phase) {
  struct job *job = &table->jobs[table->count++];
  *job = (struct job){.phase = phase, .launch = launch};
  strncpy(job->task_id, arguments->task_id, MAX_TASK_ID_BYTES);
  return job;
}

void job_table_add(struct job_table *table, const struct arguments *arguments, uint32_t launch, pid_t pid) {
  add(table, arguments, launch, JOB_RUNNING)->pid = pid;
}

void job_table_add_failed(struct job_table *table, const struct arguments *arguments, uint32_t launch, struct fault fault) {
  struct job *job = add(table, arguments, launch, is_fault(fault) ? JOB_FAILED : JOB_ENDED);
  job->fault = fault;
  job->status = STATUS_NOT_STARTED;
}

static struct job *find(const struct job_table *table, pid_t pid) {
  for (size_t i = 0; i < table->count; i++)
    if (table->jobs[i].phase == JOB_RUNNING && table->jobs[i].pid == pid) return &table->jobs[i];
  return NULL;
}

bool job_table_has_launcher(const struct job_table *table, pid_t pid) { return find(table, pid) != NULL; }

bool job_table_note_end(struct job_table *table, pid_t pid, int status) {
  struct job *job = find(table, pid);
  if (job == NULL) return false;
  job->status = status;
  if (WIFSIGNALED(status)) {
    job->phase = JOB_DRAINING;
    job->due_us = monotonic_us() + MAX_DRAINING_US;
    return false;
  }
  job->phase = JOB_ENDED;
  job->due_us = status == STATUS_NOT_STARTED ? 0 : monotonic_us() + GATHER_US;
  return true;
}

void job_table_end_draining(struct job_table *table, bool is_nothing_left) {
  for (size_t i = 0; i < table->count; i++) {
    struct job *job = &table->jobs[i];
    if (job->phase != JOB_DRAINING || (!is_nothing_left && monotonic_us() < job->due_us)) continue;
    job->phase = JOB_ENDED;
    job->due_us = 0;
  }
}

static int64_t earlier_us(int64_t one_us, int64_t other_us) { return one_us < other_us ? one_us : other_us; }

int64_t job_table_drained_us(const struct job_table *table) {
  int64_t first_us = NEVER;
  for (size_t i = 0; i < table->count; i++)
    if (table->jobs[i].phase == JOB_DRAINING) first_us = earlier_us(first_us, table->jobs[i].due_us);
  return first_us;
}

static bool is_to_be_told(const struct job *job) { return job->phase == JOB_FAILED || job->phase == JOB_ENDED; }

int64_t job_table_tell_us(const struct job_table *table) {
  int64_t first_us = NEVER;
  size_t untold = 0;
  for (size_t i = 0; i < table->count; i++) {
    if (!is_to_be_told(&table->jobs[i])) continue;
    first_us = earlier_us(first_us, table->jobs[i].due_us);
    untold++;
  }
  return untold > GATHERED_AT_ONCE ? 0 : first_us;
}

/* False when the pipe is full. */
static bool tell(const struct job_table *table, struct job *job) {
  struct arguments arguments = {.task_id = job->task_id, .notify_fd = table->notify_fd};
  if (job->phase == JOB_FAILED && !notify_failed(&arguments, job->fault)) return false;
  job->phase = JOB_ENDED;
  bool is_killed = WIFSIGNALED(job->status);
  int exit_code = is_killed ? EXIT_SIGNAL_BASE + WTERMSIG(job->status) : WEXITSTATUS(job->status);
  return notify_gone(&arguments, job->launch, exit_code, is_killed);
}

bool job_table_tell(struct job_table *table) {
  for (size_t i = 0; i < table->count;) {
    struct job *job = &table->jobs[i];
    if (!is_to_be_told(job)) {
      i++;
      continue;
    }
    if (!tell(table, job)) return false;
    *job = table->jobs[--table->count];
  }
  return true;
}
