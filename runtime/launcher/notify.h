/*
 * Lines to the service, through a FIFO that all launchers of one service share.
 *
 * A hint to look, never the truth itself: that is in the files. So a pipe that is full, or that nobody reads, is no
 * trouble of ours. A line is shorter than PIPE_BUF, so it arrives whole.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include "arguments.h"
#include "fault.h"
#include "identity.h"

/* `started ID pid pgid start_time started_ms`: the program runs. */
void notify_started(const struct arguments *arguments, const struct identity *identity);

/* `ended ID`: the outcome is in place. */
void notify_ended(const struct arguments *arguments);

/* `failed ID step errno`: there will be no outcome. */
void notify_failed(const struct arguments *arguments, struct fault fault);

#endif
