/* Binds the entries of a rootfs one by one into the new root, so mount points need not exist in the rootfs. */
#ifndef ENTRIES_H
#define ENTRIES_H

#include <stdbool.h>

/*
 * Binds each directory and file of the directory `fd` into `target` and copies its symlinks, without the names in the
 * comma-separated `except`. Fails with E2BIG for more than 256 entries.
 */
bool entries_bind(int fd, const char *target, const char *except);

#endif
