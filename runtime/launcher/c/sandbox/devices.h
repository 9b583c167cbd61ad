/* /dev of a sandbox: what programs expect of every system, and no more. */
#ifndef DEVICES_H
#define DEVICES_H

#include <stdbool.h>

/*
 * Makes the directory `dev` in the working directory, with what goes into it. Says whether the devices themselves are
 * made, which only root may do; if not, those of the host have to be mounted on files of their names.
 */
bool devices_make(bool *are_made);

/*
 * Once that is at `dev`: what has to be mounted in it. The directory `shm` becomes its /dev/shm. `host_dev_fd` is the
 * directory of the host's devices, or ABSENT where they were made.
 */
bool devices_mount(const char *dev, const char *shm, int host_dev_fd);

#endif
