/* The launcher's own descriptors: those it was given on purpose, and no others. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include "base/arguments.h"
#include "base/fault.h"

/*
 * Opens closed standard streams onto /dev/null, so that no file of ours is mistaken for one; closes all other descriptors
 * but `lock_fd` and `notify_fd`, which may be ABSENT; keeps those two from the task. A write to `notify_fd`, a pipe of
 * many writers, never blocks from then on.
 */
struct fault descriptors_tidy(int lock_fd, int notify_fd);

/* Closes all others. */
void descriptors_keep_only(int fd);

#endif
