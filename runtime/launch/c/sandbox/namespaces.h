/*
 * The namespaces of a sandbox.
 *
 * A root launcher clones its child into all of them except the user namespace. The child sets up its sandbox as root; then it
 * becomes another user in a user namespace that owns nothing, so capabilities gained in there have no effect outside. A
 * launcher that is not root begins with the user namespace, which gives the rights to create the others. Either way one user
 * and one group are mapped, to themselves.
 */
#ifndef NAMESPACES_H
#define NAMESPACES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"

/* The flags of clone() for these features. */
unsigned int namespaces_of_birth(unsigned int features, bool is_root);

/* Like fork(), into new namespaces. */
pid_t namespaces_fork(unsigned int flags);

/* Maps the user and group of the current user namespace, which the caller created. */
struct fault namespaces_map_user(uid_t uid, gid_t gid);

/* Creates and enters a user namespace for the current user. */
struct fault namespaces_enter_user(uid_t uid, gid_t gid);

/* Forbids further user namespaces inside the current one, for good. False if the kernel does not permit that. */
bool namespaces_close_user(void);

/* Makes the joined cgroup the root of the visible hierarchy. */
struct fault namespaces_enter_cgroup(void);

/* Starts loopback, the only interface of a new network namespace. */
struct fault namespaces_raise_loopback(void);

#endif
