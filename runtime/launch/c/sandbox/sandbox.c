#include "sandbox/sandbox.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/egress.h"
#include "sandbox/namespaces.h"
#include "sandbox/privileges.h"
#include "sandbox/seccomp.h"
#include "sandbox/view.h"

struct sandbox sandbox_of(const struct arguments *arguments) {
  struct sandbox sandbox = {.arguments = arguments, .is_on = arguments->sandbox != NULL};
  if (!sandbox.is_on) return sandbox;
  features_parse(arguments->sandbox, &sandbox.features); /* it was checked */
  sandbox.is_root = geteuid() == 0;
  sandbox.uid = sandbox.is_root ? (uid_t)arguments->sandbox_uid : geteuid();
  sandbox.gid = sandbox.is_root ? (gid_t)arguments->sandbox_uid : getegid();
  return sandbox;
}

bool sandbox_has(const struct sandbox *sandbox, enum feature feature) { return (sandbox->features & feature) != 0; }

/* Otherwise its network is the launcher's: the host's, or one that was made ahead of time. */
static bool makes_network(const struct sandbox *sandbox) {
  return sandbox_has(sandbox, FEATURE_NET) && !sandbox->arguments->has_network;
}

unsigned int sandbox_birth_flags(const struct sandbox *sandbox) {
  unsigned int made = makes_network(sandbox) ? sandbox->features : sandbox->features & ~(unsigned int)FEATURE_NET;
  return sandbox->is_on ? namespaces_of_birth(made, sandbox->is_root) : 0;
}

/* With the rights of root, or those of the user namespace that we were born into. */
static struct fault set_up(const struct sandbox *sandbox, int egress_fd) {
  struct fault fault = no_fault();
  bool has_user = sandbox_has(sandbox, FEATURE_USER);
  if (has_user && !sandbox->is_root) fault = namespaces_map_user(sandbox->uid, sandbox->gid);
  if (!is_fault(fault) && sandbox_has(sandbox, FEATURE_CGROUP)) fault = namespaces_enter_cgroup();
  if (!is_fault(fault) && makes_network(sandbox)) fault = namespaces_raise_loopback();
  if (!is_fault(fault) && egress_fd != ABSENT)
    fault = egress_hand_over(egress_fd, (int)sandbox->arguments->egress_port, has_user && !sandbox->is_root);
  if (!is_fault(fault) && sandbox_has(sandbox, FEATURE_MOUNT))
    fault = view_build(&sandbox->arguments->mounts);
  return fault;
}

/* For good: from here on there is no way back to any right. */
static struct fault give_up_rights(const struct sandbox *sandbox) {
  struct fault fault = no_fault();
  bool has_user = sandbox_has(sandbox, FEATURE_USER);
  if (sandbox->is_root) fault = privileges_become(sandbox->uid, sandbox->gid);
  if (!is_fault(fault) && has_user && sandbox->is_root) fault = namespaces_enter_user(sandbox->uid, sandbox->gid);
  /* The filter forbids it too; this holds for what the filter does not know. */
  if (!is_fault(fault) && has_user && !namespaces_close_user() && !sandbox_has(sandbox, FEATURE_SECCOMP))
    fault = fault_at(STEP_USER_NAMESPACE);
  return is_fault(fault) ? fault : privileges_drop();
}

struct fault sandbox_enter(const struct sandbox *sandbox, int egress_fd) {
  if (!sandbox->is_on) return no_fault();
  umask(0);
  struct fault fault = set_up(sandbox, egress_fd);
  if (!is_fault(fault)) fault = give_up_rights(sandbox);
  if (is_fault(fault)) return fault;
  /* A change of the user has cancelled the first. Nobody in there looks into our memory or descriptors, whatever user it
   * is: the task's own are open to it again once it is the program. */
  bool is_safe = prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
  return is_safe ? no_fault() : fault_at(STEP_PRIVILEGES);
}

struct fault sandbox_filter(const struct sandbox *sandbox) {
  if (!sandbox->is_on || !sandbox_has(sandbox, FEATURE_SECCOMP)) return no_fault();
  return seccomp_filter() ? no_fault() : fault_at(STEP_SECCOMP);
}
