/* The launcher's own descriptors: those it was given on purpose, and no others. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include "base/arguments.h"
#include "base/fault.h"

/* Descriptors that may be given; ABSENT where one is not. */
#define GIVEN_COUNT 2

/*
 * Opens standard streams that are closed onto /dev/null, so that no file of ours is mistaken for one; closes what was
 * inherited by accident; keeps those that were `given` from the task. `shared_fd` is one of them, a pipe that others write, too.
 */
struct fault descriptors_tidy(const int given[GIVEN_COUNT], int shared_fd);

/* Closes all others. */
void descriptors_keep_only(int fd);

#endif
