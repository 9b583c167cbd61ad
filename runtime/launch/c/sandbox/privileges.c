#include "sandbox/privileges.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Beyond the last capability that any kernel has; where they end, the kernel says so. */
#define CAPABILITIES_END 64

#define SETS 2

static bool set_capabilities(const struct __user_cap_data_struct *sets) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  return syscall(SYS_capset, &header, sets) == 0;
}

/* A change of the user takes the effective ones away; the permitted ones were kept. */
static bool raise_permitted(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  struct __user_cap_data_struct sets[SETS];
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  for (int i = 0; i < SETS; i++) sets[i].effective = sets[i].permitted;
  return set_capabilities(sets);
}

/* By the system calls: the C library makes four of each, for the sake of threads that we do not have. */
struct fault privileges_become(uid_t uid, gid_t gid) {
  bool has_become = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && syscall(SYS_setgroups, 0, NULL) == 0 &&
                    syscall(SYS_setresgid, gid, gid, gid) == 0 && syscall(SYS_setresuid, uid, uid, uid) == 0 &&
                    raise_permitted();
  return has_become ? no_fault() : fault_at(STEP_SANDBOX_UID);
}

struct fault privileges_drop(void) {
  /* From programs first, then from us: only who has CAP_SETPCAP may. Without it there is nothing to gain either, below. */
  for (unsigned long capability = 0; capability < CAPABILITIES_END; capability++)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;
  struct __user_cap_data_struct none[SETS];
  memset(none, 0, sizeof none);
  bool is_dropped = set_capabilities(none) && prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) == 0 &&
                    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  return is_dropped ? no_fault() : fault_at(STEP_PRIVILEGES);
}
