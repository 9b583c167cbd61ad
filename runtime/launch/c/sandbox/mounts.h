/* Single mount operations. Host paths are bound through descriptors, so that nobody can swap them in between. */
#ifndef MOUNTS_H
#define MOUNTS_H

#include <stdbool.h>

/*
 * Makes all mounts of the namespace private, so that mounts and unmounts propagate neither to the host nor from it. A new
 * mount namespace of root starts with the propagation of the host, which systemd makes shared. To be called before any
 * other mount operation. Works on every kernel. Fails with EINVAL in a chroot.
 */
bool mounts_make_private(void);

/*
 * Makes the mount at `path` and all mounts below it read-only, nosuid and nodev, without a change of propagation. Uses
 * mount_setattr (Linux 5.12), or remounts one by one if the kernel or a seccomp filter does not permit that call.
 */
bool mounts_freeze(const char *path);

/* Binds the open `fd` to `target`, with all mounts below it and their current flags. */
bool bind_fd(int fd, const char *target);

/* The same for a path, relative to the working directory. */
bool bind_path(const char *source, const char *target);

/* Sets the flags of the mount at `path`. */
bool remount(const char *path, unsigned long flags);

/* Flags of the mount of `fd` that a user namespace may have locked. A remount of a bind of it has to repeat them. */
unsigned long lasting_flags(int fd);

#endif
