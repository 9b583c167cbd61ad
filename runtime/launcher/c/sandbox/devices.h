/* /dev of a sandbox: what programs expect of every system, and no more. */
#ifndef DEVICES_H
#define DEVICES_H

#include <stdbool.h>

/*
 * Makes the directory `dev` with all that goes into it. Says whether the nodes themselves could be made, which only root
 * may do; if not, there are empty files to mount those of the host on.
 */
bool devices_make(const char *dev, bool *are_made);

/*
 * Once that directory appears at `dev`: mounts in it the terminals, and the nodes of the host's /dev that `host_dev_fd` is;
 * ABSENT where nodes were made.
 */
bool devices_mount(const char *dev, int host_dev_fd);

#endif
