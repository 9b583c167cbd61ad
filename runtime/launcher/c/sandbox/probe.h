/*
 * `--probe UID [--mount ...]... --chroot [--mount ...]...`: finds out which parts of a sandbox work on this host, by setting
 * up some that run nothing.
 *
 * A line on standard output for each of the features (features.h), for `chroot`, a root of its own, for `rootless`, a
 * whole sandbox of a user who is not root, for `whole`, all features together, and for `none`, a user without
 * rights and nothing else:
 *
 *   mount ok
 *   pid proc 1        the step that failed (fault.h), and its errno
 *
 * UID is the user of sandboxes. Only root needs one; for others it is ignored. The lists of mounts (mount-list.h) build the
 * host view and a view with a rootfs. If all features work together, none is tried alone.
 */
#ifndef PROBE_H
#define PROBE_H

/* `words` is what follows `--probe`. The exit code. */
int probe(char **words);

#endif
