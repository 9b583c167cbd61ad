/* Closes descriptors that a launcher inherited by accident. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include "base/arguments.h"
#include "base/fault.h"

/*
 * Opens /dev/null for closed standard streams, so that no other file gets their numbers. Closes all other descriptors except
 * `lock_fd` and `notify_fd` (ABSENT without one), which become close-on-exec. Makes `notify_fd` non-blocking.
 */
struct fault descriptors_tidy(int lock_fd, int notify_fd);

/* Closes all descriptors except `fd`. */
void descriptors_keep_only(int fd);

#endif
