/* Single mounts, in a mount namespace of our own. Sources are descriptors, so that nobody replaces them under us. */
#ifndef MOUNTS_H
#define MOUNTS_H

#include <stdbool.h>

/*
 * Makes all mounts of the namespace private: neither mounts nor unmounts propagate to the host from then on, nor from it.
 * A new mount namespace of root starts with the propagation of the host's mounts, which systemd makes shared; so this
 * comes before any other mount call. It needs no recent kernel. Fails with EINVAL in a chroot.
 */
bool mounts_make_private(void);

/*
 * The mount at `path` and all below it: read-only, without set-user-id programs and devices. In one call from Linux 5.12
 * on, mount by mount before, and where a filter forbids that call. Leaves propagation as it is.
 */
bool mounts_freeze(const char *path);

/* What `fd` was opened on, with all mounts below it, at `target`: with the flags that its mount has by now. */
bool bind_fd(int fd, const char *target);

/* The same for a path, relative to the working directory. */
bool bind_path(const char *source, const char *target);

/* The flags of the mount at `path` become these. */
bool remount(const char *path, unsigned long flags);

/* Flags of the mount under `fd` that nobody without its rights can take away: they go with each of its copies. */
unsigned long lasting_flags(int fd);

#endif
