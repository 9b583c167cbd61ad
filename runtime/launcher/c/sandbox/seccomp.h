/*
 * The filter for system calls: what namespaces do not cover, and what is only needed to attack the kernel.
 *
 * A call that is refused fails with EPERM, as for anybody without rights; newer calls that programs can do without
 * (clone3, io_uring) with ENOSYS, so that they fall back. Nothing is killed. Everything else is allowed, newer calls too:
 * the filter adds to namespaces and lost rights and does not replace them.
 */
#ifndef SECCOMP_H
#define SECCOMP_H

#include <stdbool.h>

/* For us and all that comes after us. Without a pid namespace others' processes are not to be traced either. */
bool seccomp_filter(bool has_own_pids);

#endif
