/*
 * The seccomp filter: refuses system calls that namespaces do not cover, and calls that are needed only to attack the kernel.
 *
 * A refused call fails with EPERM, as for any unprivileged user, or with ENOSYS if programs have a fallback for it (clone3,
 * io_uring). Nothing is killed. All other calls are allowed: the filter adds to namespaces and dropped capabilities.
 */
#ifndef SECCOMP_H
#define SECCOMP_H

#include <stdbool.h>
#include <stddef.h>

/* Installs the filter for the caller and its descendants: the same one for each combination of namespaces. */
bool seccomp_filter(void);

/*
 * For a process of ours that has nothing to open: allows these calls alone, and of sockets only Unix sockets. Any other call
 * kills it.
 */
bool seccomp_allow_only(const unsigned int calls[], size_t count);

#endif
