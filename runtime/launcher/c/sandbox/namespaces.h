/*
 * The namespaces of a sandbox.
 *
 * Root makes all of them but the user namespace at the birth of the child, sets up what is in them with all its rights,
 * and only then becomes another user in a user namespace that owns nothing: whatever the task gains in there counts
 * nowhere. Who is not root begins with the user namespace, which gives the rights to make the others. In both cases one
 * user and one user group are mapped, to themselves.
 */
#ifndef NAMESPACES_H
#define NAMESPACES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"

/* The flags of clone() for a child of whoever `is_root`. */
unsigned int namespaces_of_birth(unsigned int features, bool is_root);

/* fork() into new namespaces. */
pid_t namespaces_fork(unsigned int flags);

/* Maps the only user and user group of the namespace that we are in and made. */
struct fault namespaces_map_user(uid_t uid, gid_t gid);

/* Makes and enters a user namespace of the present user. */
struct fault namespaces_enter_user(uid_t uid, gid_t gid);

/* No further user namespaces in the present one, for good. False where that cannot be said. */
bool namespaces_close_user(void);

/* The view of control groups begins with the one that was joined. */
struct fault namespaces_enter_cgroup(void);

/* In a new network there is nothing but loopback, which is down. */
struct fault namespaces_raise_loopback(void);

#endif
