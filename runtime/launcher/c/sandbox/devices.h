/* The /dev of a sandbox: the nodes and links that programs expect on every system, and no others. */
#ifndef DEVICES_H
#define DEVICES_H

#include <stdbool.h>

/*
 * Creates the directory `dev` with device nodes, links, and mount points for pts and shm. Only root may create nodes:
 * without that right `are_made` is false, and the nodes are empty files to mount those of the host on.
 */
bool devices_make(const char *dev, bool *are_made);

/*
 * Mounts devpts in that directory, which is bound to `dev` now, and the nodes of the host. `host_dev_fd` is the /dev of the
 * host, or ABSENT if nodes were created.
 */
bool devices_mount(const char *dev, int host_dev_fd);

#endif
