/* Takes all privileges from a task, for good. */
#ifndef PRIVILEGES_H
#define PRIVILEGES_H

#include <sys/types.h>

#include "base/fault.h"

/* Becomes another user without supplementary groups. Keeps the capabilities until privileges_drop. */
struct fault privileges_become(uid_t uid, gid_t gid);

/* Drops all capabilities from all sets, and forbids gaining any by exec. */
struct fault privileges_drop(void);

#endif
