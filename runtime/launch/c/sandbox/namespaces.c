#include "sandbox/namespaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/features.h"
#include "base/files.h"
#include "base/text.h"

unsigned int namespaces_of_birth(unsigned int features, bool is_root) {
  static const struct {
    enum feature feature;
    unsigned int flag;
  } AT_BIRTH[] = {
    {FEATURE_MOUNT, CLONE_NEWNS}, {FEATURE_PID, CLONE_NEWPID}, {FEATURE_UTS, CLONE_NEWUTS},
    {FEATURE_IPC, CLONE_NEWIPC},  {FEATURE_NET, CLONE_NEWNET},
  };
  unsigned int flags = !is_root && (features & FEATURE_USER) != 0 ? CLONE_NEWUSER : 0;
  for (size_t i = 0; i < sizeof AT_BIRTH / sizeof AT_BIRTH[0]; i++)
    if ((features & AT_BIRTH[i].feature) != 0) flags |= AT_BIRTH[i].flag;
  return flags;
}

/* By the system call: the C library has no such fork(). */
pid_t namespaces_fork(unsigned int flags) {
  return flags == 0 ? fork() : (pid_t)syscall(SYS_clone, (unsigned long)(flags | SIGCHLD), 0UL, 0UL, 0UL, 0UL);
}

static bool write_map(const char *path, unsigned int id) {
  struct text text;
  return write_file(AT_FDCWD, path, text_set(&text, "%u %u 1\n", id, id));
}

struct fault namespaces_map_user(uid_t uid, gid_t gid) {
  /* Without the right to drop groups; before 3.19 there was no such file, and no need. */
  if (!write_file(AT_FDCWD, "/proc/self/setgroups", "deny") && errno != ENOENT) return fault_at(STEP_USER_MAP);
  return write_map("/proc/self/uid_map", uid) && write_map("/proc/self/gid_map", gid) ? no_fault() : fault_at(STEP_USER_MAP);
}

struct fault namespaces_enter_user(uid_t uid, gid_t gid) {
  /* A change of the user makes our files in /proc root's. */
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 || unshare(CLONE_NEWUSER) != 0) return fault_at(STEP_USER_NAMESPACE);
  return namespaces_map_user(uid, gid);
}

bool namespaces_close_user(void) { return write_file(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0"); }

struct fault namespaces_enter_cgroup(void) {
  return unshare(CLONE_NEWCGROUP) == 0 ? no_fault() : fault_at(STEP_CGROUP_NAMESPACE);
}

struct fault namespaces_raise_loopback(void) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fault_at(STEP_LOOPBACK);
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  struct fault fault = ioctl(fd, SIOCSIFFLAGS, &request) == 0 ? no_fault() : fault_at(STEP_LOOPBACK);
  close(fd);
  return fault;
}
