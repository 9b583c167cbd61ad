/* The launcher's own descriptors: those it was given on purpose, and no others. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include "arguments.h"
#include "fault.h"

/*
 * Opens standard streams that are closed onto /dev/null, so that no file of ours is mistaken for one; closes what was
 * inherited by accident; keeps the descriptors of the arguments from the task.
 */
struct fault descriptors_tidy(const struct arguments *arguments);

/* Closes all others. */
void descriptors_keep_only(int fd);

#endif
