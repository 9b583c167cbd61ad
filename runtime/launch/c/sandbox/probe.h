/*
 * `--probe` and the arguments of a task (base/arguments.h): sets up the sandbox of that task and runs nothing in it. Prints
 * `ok`, or the step that failed (fault.h) and its errno: `proc 1`.
 *
 * `--probe-rootless` does the same as a user who is not root; a launcher that is root becomes that user first.
 */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>

bool probe_is_wanted(const char *first_argument);

/* The exit code. */
int probe(char **argv);

#endif
