/*
 * Lines to the service, through a FIFO that all launchers of one service share.
 *
 * A hint to look, never the truth itself: that is in the files. So a pipe that is full, or that nobody reads, is no
 * trouble of a launcher. A line is shorter than PIPE_BUF, so it arrives whole.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arguments.h"
#include "base/fault.h"
#include "base/identity.h"

/* `started ID launcher_pid pid pgid start_time started_ms`: the program runs. Left out where that is over at once. */
void notify_started(const struct arguments *arguments, const struct identity *identity);

/* `timeout ID`: the wall time of a program that runs is over, and it was asked to end. */
void notify_timeout(const struct arguments *arguments);

/* `ended ID`: the outcome is in place. */
void notify_ended(const struct arguments *arguments);

/* `failed ID step errno`: there will be no outcome. False when the pipe is full. */
bool notify_failed(const struct arguments *arguments, struct fault fault);

/*
 * `gone ID launch exit_code`: of the fork server, that the launcher has ended (job-table.h). Behind it ` killed` where
 * a signal ended the launcher itself: a task that exits with 128 + n, or is ended by a signal, has the same exit code.
 * False when the pipe is full.
 */
bool notify_gone(const struct arguments *arguments, uint32_t launch, int exit_code, bool is_killed);

#endif
