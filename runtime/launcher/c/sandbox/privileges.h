/* What a task may do beyond its user: nothing, and never again anything. */
#ifndef PRIVILEGES_H
#define PRIVILEGES_H

#include <sys/types.h>

#include "base/fault.h"

/* Becomes another user, without groups; the capabilities stay until they are dropped. */
struct fault privileges_become(uid_t uid, gid_t gid);

/* No capability in any set, and no way to one: not by what is executed either. */
struct fault privileges_drop(void);

#endif
