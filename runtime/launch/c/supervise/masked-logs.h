/*
 * The way of the output of a task that has secrets: through pipes to its launcher, which masks the texts that it was given, and
 * writes the rest to the logs. So no unmasked byte reaches a disk, whatever becomes of the service. Without such texts, the
 * task writes to the logs itself.
 *
 * The texts are in variables of the environment, in hexadecimal, because others can read arguments. The task does not get
 * these variables.
 */
#ifndef MASKED_LOGS_H
#define MASKED_LOGS_H

#include "base/arguments.h"
#include "base/fault.h"
#include "supervise/masker.h"
#include "supervise/task-dir.h"

struct masked_stream {
  /* Our end of the pipe; ABSENT without one, and after its end. */
  int from_fd;
  int log_fd;
  struct masker masker;
};

struct masked_logs {
  struct mask_texts texts;
  /* stdout and stderr. */
  struct masked_stream streams[2];
};

#define NO_MASKED_LOGS {.streams = {{.from_fd = ABSENT}, {.from_fd = ABSENT}}}

/*
 * Takes the texts out of the environment, and opens the pipes of `logs`, which has none yet. EINVAL if there are not as many texts as `arguments` say, or
 * if they are malformed or too large. Opens nothing if `arguments` have no texts.
 */
struct fault masked_logs_open(struct masked_logs *logs, const struct arguments *arguments, struct task_dir *dir);

/* Closes the ends of the task, once it was forked. */
void masked_logs_close_ends(const struct masked_logs *logs, const struct task_dir *dir);

/* Masks what is in the pipe, at most one chunk. To be called when `from_fd` is readable. */
void masked_stream_read(struct masked_stream *stream);

/* Masks what is left in the pipes, once nothing of the task runs any more. */
void masked_logs_finish(struct masked_logs *logs);

#endif
