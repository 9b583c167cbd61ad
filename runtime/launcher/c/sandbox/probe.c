#include "sandbox/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "sandbox/namespaces.h"
#include "sandbox/sandbox.h"

#define EXIT_USAGE 125

#define ALL_FEATURES                                                                                                   \
  (FEATURE_MOUNT | FEATURE_PID | FEATURE_UTS | FEATURE_IPC | FEATURE_NET | FEATURE_CGROUP | FEATURE_USER | FEATURE_SECCOMP)

/* What a task is preceded by, and a process in its place. */
static struct fault go_in(const struct sandbox *sandbox) {
  struct fault fault = sandbox_enter(sandbox);
  if (!is_fault(fault)) fault = sandbox_filter(sandbox);
  if (is_fault(fault)) return fault;
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  return pid > 0 && waitpid(pid, NULL, 0) == pid ? no_fault() : fault_at(STEP_INIT);
}

typedef struct fault attempt(const struct sandbox *sandbox);

/* Calls `enter` in a child, made with these flags of clone(). Returns the fault of either. */
static struct fault try_in_child(attempt *enter, const struct sandbox *sandbox, unsigned int flags) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fault_at(STEP_FORK);
  pid_t pid = namespaces_fork(flags);
  struct fault fault = fault_at(STEP_NAMESPACES);
  if (pid == 0) {
    fault_send(ends[1], enter(sandbox));
    _exit(0);
  }
  close(ends[1]);
  if (pid > 0) {
    fault = fault_receive(ends[0]);
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR) continue;
  }
  close(ends[0]);
  return fault;
}

static struct fault try_sandbox(const struct sandbox *sandbox) {
  return try_in_child(go_in, sandbox, sandbox_birth_flags(sandbox));
}

/* As somebody who was never root. */
static struct fault try_as_other(const struct sandbox *root) {
  struct sandbox sandbox = *root;
  bool is_other = setgroups(0, NULL) == 0 && setresgid(sandbox.gid, sandbox.gid, sandbox.gid) == 0 &&
                  setresuid(sandbox.uid, sandbox.uid, sandbox.uid) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
  if (!is_other) return fault_at(STEP_SANDBOX_UID);
  sandbox.is_root = false;
  return try_sandbox(&sandbox);
}

static struct fault try_rootless(const struct sandbox *sandbox) {
  return sandbox->is_root ? try_in_child(try_as_other, sandbox, 0) : try_sandbox(sandbox);
}

static void say(const char *name, struct fault fault) {
  struct text line;
  if (is_fault(fault)) text_set(&line, "%s %s %d\n", name, step_name(fault.step), fault.error);
  else text_set(&line, "%s ok\n", name);
  write_all(STDOUT_FILENO, line.bytes, line.length, AT_END);
}

/* Who is not root has nothing without the user namespace. A pid namespace is tried together with what shows it. */
static unsigned int needed_by(enum feature feature, const struct sandbox *whole, bool has_mount) {
  unsigned int features = feature;
  if (!whole->is_root && feature != FEATURE_SECCOMP) features |= FEATURE_USER;
  if (feature == FEATURE_PID && has_mount) features |= FEATURE_MOUNT;
  return features;
}

static void try_features(const struct sandbox *whole, bool is_whole) {
  bool has_mount = false;
  for (unsigned int feature = 1; feature <= ALL_FEATURES; feature <<= 1) {
    struct sandbox alone = *whole;
    alone.features = needed_by((enum feature)feature, whole, has_mount);
    struct fault fault = is_whole ? no_fault() : try_sandbox(&alone);
    if (feature == FEATURE_MOUNT) has_mount = !is_fault(fault);
    say(feature_name((enum feature)feature), fault);
  }
}

/* What is left where nothing works: another user, or at least no rights. */
static void try_plain(const struct sandbox *whole, bool is_whole) {
  struct sandbox plain = *whole;
  plain.features = 0;
  say("none", is_whole ? no_fault() : try_sandbox(&plain));
}

static void try_root(const struct sandbox *whole, const struct arguments *rooted) {
  struct sandbox sandbox = *whole;
  sandbox.arguments = rooted;
  sandbox.features = needed_by(FEATURE_MOUNT, whole, true);
  say("chroot", try_sandbox(&sandbox));
}

/* Returns the word after the list, or NULL if the list is empty or wrong. */
static char **read_list(struct mount_list *list, char **words) {
  struct text complaint;
  while (words != NULL && *words != NULL && strcmp(*words, "--mount") == 0) words = mount_list_add(list, words, &complaint);
  return list->count > 0 ? words : NULL;
}

int probe(char **words) {
  /* Static, because they must be zero. */
  static struct arguments arguments, rooted;
  bool is_root = geteuid() == 0;
  unsigned long number = *words == NULL ? 0 : strtoul(*words, NULL, 10);
  if (*words == NULL || (is_root && (number == 0 || number > MAX_UID))) return EXIT_USAGE;
  words = read_list(&arguments.mounts, words + 1);
  if (words == NULL || *words == NULL || strcmp(*words, "--chroot") != 0) return EXIT_USAGE;
  words = read_list(&rooted.mounts, words + 1);
  if (words == NULL || *words != NULL) return EXIT_USAGE;
  struct sandbox whole = {
    .arguments = &arguments,
    .is_on = true,
    .features = ALL_FEATURES,
    .is_root = is_root,
    .uid = is_root ? (uid_t)number : geteuid(),
    .gid = is_root ? (gid_t)number : getegid(),
  };
  struct fault fault = try_sandbox(&whole);
  say("whole", fault);
  try_plain(&whole, !is_fault(fault));
  try_features(&whole, !is_fault(fault));
  try_root(&whole, &rooted);
  say("rootless", is_root || is_fault(fault) ? try_rootless(&whole) : fault);
  return 0;
}
