/*
 * `--probe UID [--mount ...]... --chroot [--mount ...]...`: what a sandbox can be made of on this host, found out by making
 * some that do nothing.
 *
 * A line on standard output for each of the features (features.h), for `chroot`, a root of its own, for `rootless`, a
 * whole sandbox of a user who is not root, for `whole`, all features together, and for `none`, a user without
 * rights and nothing else:
 *
 *   mount ok
 *   pid proc 1        the step that failed (fault.h), and its errno
 *
 * UID is the user of sandboxes, for root; who is not root has none, whatever it is. The lists (mount-list.h) are the view
 * of the host, and that of a root. When all features work together, none is tried by itself.
 */
#ifndef PROBE_H
#define PROBE_H

/* `words` is what follows `--probe`. The exit code. */
int probe(char **words);

#endif
