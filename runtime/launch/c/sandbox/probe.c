#include "sandbox/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/complaint.h"
#include "base/files.h"
#include "sandbox/namespaces.h"
#include "sandbox/sandbox.h"

#define EXIT_USAGE 125

bool probe_is_wanted(const char *first_argument) {
  return strcmp(first_argument, "--probe") == 0 || strcmp(first_argument, "--probe-rootless") == 0;
}

/* What precedes a task, and a process in its place. */
static struct fault go_in(const struct sandbox *sandbox) {
  struct fault fault = sandbox_enter(sandbox, ABSENT);
  if (!is_fault(fault)) fault = sandbox_filter(sandbox);
  if (is_fault(fault)) return fault;
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  return pid > 0 && waitpid(pid, NULL, 0) == pid ? no_fault() : fault_at(STEP_INIT);
}

/* In a child. Returns its fault, or the fault of making it. */
static struct fault try_sandbox(const struct sandbox *sandbox) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fault_at(STEP_FORK);
  pid_t pid = namespaces_fork(sandbox_birth_flags(sandbox));
  struct fault fault = fault_at(STEP_NAMESPACES);
  if (pid == 0) {
    fault_send(ends[1], go_in(sandbox));
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

/* Becomes the user of the sandbox, for good. */
static bool leave_root(struct sandbox *sandbox) {
  if (!sandbox->is_root) return true;
  sandbox->is_root = false;
  return setgroups(0, NULL) == 0 && setresgid(sandbox->gid, sandbox->gid, sandbox->gid) == 0 &&
         setresuid(sandbox->uid, sandbox->uid, sandbox->uid) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

int probe(char **argv) {
  struct arguments arguments;
  struct text line;
  text_clear(&line);
  if (!arguments_parse(&arguments, argv + 1, &line)) {
    complain_of_usage(&line);
    return EXIT_USAGE;
  }
  struct sandbox sandbox = sandbox_of(&arguments);
  bool has_user = strcmp(argv[1], "--probe-rootless") != 0 || leave_root(&sandbox);
  struct fault fault = has_user ? try_sandbox(&sandbox) : fault_at(STEP_SANDBOX_UID);
  if (is_fault(fault)) text_set(&line, "%s %d\n", step_name(fault.step), fault.error);
  else text_set(&line, "ok\n");
  return write_all(STDOUT_FILENO, line.bytes, line.length, AT_END) ? 0 : EXIT_USAGE;
}
