/*
 * Lines to serve, through a FIFO that all launchers of a service share.
 *
 * A line is only a hint to look at the files, so a launcher ignores a full or unread pipe. A line is shorter than PIPE_BUF
 * and therefore atomic.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arguments.h"
#include "base/fault.h"
#include "base/identity.h"

/* `started ID launcher_pid pid pgid start_time started_ms`: the program runs. Not sent for a program that ends at once. */
void notify_started(const struct arguments *arguments, const struct identity *identity);

/* `timeout ID`: the wall time is over, and the task was sent TERM. */
void notify_timeout(const struct arguments *arguments);

/* `ended ID`: the outcome is written. */
void notify_ended(const struct arguments *arguments);

/* `failed ID step errno`: there will be no outcome. False if the pipe is full. */
bool notify_failed(const struct arguments *arguments, struct fault fault);

/*
 * `gone ID launch exit_code`, sent by the fork server: the launcher has ended (job-table.h). ` killed` follows if a signal
 * ended the launcher, because a task can cause the same exit code. False if the pipe is full.
 */
bool notify_gone(const struct arguments *arguments, uint32_t launch, int exit_code, bool is_killed);

#endif
