/* /dev of a sandbox: what programs expect of every system, and no more. */
#ifndef DEVICES_H
#define DEVICES_H

#include <stdbool.h>

/* Makes the directory `dev` in the working directory, with what goes into it. Root makes the devices themselves. */
bool devices_make(void);

/*
 * Once that is at `dev`: what has to be mounted in it. The directory `shm` becomes its /dev/shm. Devices that could not be
 * made are those of `host_dev_fd`, the directory of the host.
 */
bool devices_mount(const char *dev, const char *shm, int host_dev_fd);

#endif
