#include "supervise/forwarder.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/text.h"
#include "sandbox/egress.h"
#include "sandbox/privileges.h"
#include "sandbox/seccomp.h"
#include "supervise/relay.h"

/* The directory and the name of a path. */
static const char *split(struct text *directory, const char *path) {
  const char *slash = strrchr(path, '/');
  text_set(directory, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  return slash + 1;
}

/* The user namespace comes first: it gives the rights for the rest to a launcher that is not root. */
static bool enter(const struct egress *egress, const struct text *directory) {
  if (egress->user_fd != ABSENT && setns(egress->user_fd, CLONE_NEWUSER) != 0) return false;
  if (setns(egress->net_fd, CLONE_NEWNET) != 0 || chroot(directory->bytes) != 0 || chdir("/") != 0) return false;
  if (egress->user_fd != ABSENT) close(egress->user_fd);
  return close(egress->net_fd) == 0;
}

/* For good. A change of rights cancels the signal for the end of the parent, which may have come meanwhile. */
static bool give_up_rights(pid_t parent) {
  bool has_groups = geteuid() == 0; /* others may not drop them */
  return (!has_groups || syscall(SYS_setgroups, 0, NULL) == 0) && !is_fault(privileges_drop()) &&
         prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
         getppid() == parent && seccomp_allow_only(RELAY_CALLS, RELAY_CALL_COUNT);
}

_Noreturn static void forward(int channel_fd, const char *socket, const struct cgroup *cgroup, pid_t parent) {
  prctl(PR_SET_NAME, "taskmill-egress");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct fault fault = cgroup_join(cgroup);
  descriptors_keep_only(channel_fd);
  struct egress egress;
  if (!egress_receive(channel_fd, &egress)) _exit(0); /* there will be no task */
  struct text directory;
  const char *name = split(&directory, socket);
  bool is_ready = enter(&egress, &directory) && relay_prepare(egress.listeners, egress.listener_count, name) &&
                  give_up_rights(parent);
  if (!is_fault(fault) && !is_ready) fault = fault_at(STEP_EGRESS);
  egress_answer(channel_fd, fault);
  close(channel_fd);
  if (!is_fault(fault)) relay_run();
  _exit(0);
}

struct fault forwarder_start(pid_t *pid, int *channel_fd, const struct arguments *arguments, const struct cgroup *cgroup) {
  int ours;
  pid_t parent = getpid();
  if (!egress_channel(&ours, channel_fd)) return fault_at(STEP_EGRESS);
  *pid = fork();
  if (*pid == 0) forward(ours, arguments->egress_socket, cgroup, parent);
  close(ours);
  return *pid > 0 ? no_fault() : fault_at(STEP_FORK);
}
