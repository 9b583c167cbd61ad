#include "supervise/task.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/setproctitle.h"
#include "sandbox/limits.h"
#include "sandbox/namespaces.h"
#include "supervise/forwarder.h"
#include "supervise/init.h"
#include "supervise/signals.h"

/* Exit code of a child that could not become the task; the fault pipe says why. */
#define NOT_THE_TASK 127

/*
 * What login shells give. A directory of ours around the workspace keeps others out; 077 would reach into what tasks
 * make for others on purpose: archives, installed files, web roots.
 */
#define TASK_UMASK 022

#define INIT_NAME "taskmill-init"

static struct fault connect_stdio(const struct task_dir *dir) {
  bool is_connected = dup2(dir->stdin_fd, STDIN_FILENO) >= 0 && dup2(dir->task_stdout_fd, STDOUT_FILENO) >= 0 &&
                      dup2(dir->task_stderr_fd, STDERR_FILENO) >= 0;
  return is_connected ? no_fault() : fault_at(STEP_STDIO);
}

/*
 * In a sandbox without a mount namespace, the sandbox user may not be able to search all directories of the path. So the
 * working directory is entered before the change of the user.
 */
static bool enters_early(const struct sandbox *sandbox) { return sandbox->is_on && !sandbox_has(sandbox, FEATURE_MOUNT); }

static struct fault enter_workdir(const struct task_setup *setup) {
  return chdir(setup->arguments->workdir) == 0 ? no_fault() : fault_at(STEP_WORKDIR);
}

/* The part of the set-up that the task does itself. */
static struct fault set_up(const struct task_setup *setup) {
  if (setsid() < 0) return fault_at(STEP_SESSION);
  struct fault fault = connect_stdio(setup->dir);
  if (!is_fault(fault)) fault = limits_apply(setup->arguments);
  if (is_fault(fault)) return fault;
  umask(TASK_UMASK);
  if (!enters_early(setup->sandbox)) fault = enter_workdir(setup);
  return is_fault(fault) ? fault : sandbox_filter(setup->sandbox);
}

_Noreturn static void say_fault(int fault_fd, struct fault fault) {
  fault_send(fault_fd, fault);
  _exit(NOT_THE_TASK);
}

/* Writes the record of the task, before its program runs. */
static struct fault write_down(const struct task *task, struct identity *identity, struct record *record) {
  struct fault fault = identity_find(identity, task->main_pid, task->not_before);
  return is_fault(fault) ? fault : record_start(record, identity);
}

/* The child's ends of the pipes, and how it was forked. */
struct birth {
  int go_fd;
  int fault_fd;
  int init_fd;
  int egress_fd;
  pid_t parent;
  bool is_child;
  bool has_joined;
};

/*
 * Becomes the program, with the present environment, or returns with errno set. A name without a slash is looked up in
 * PATH. A file that is neither a binary nor begins with `#!` gets ENOEXEC: no shell is tried on it.
 */
static void exec_program(char **command) {
  if (strchr(command[0], '/') != NULL) execv(command[0], command);
  else execvp(command[0], command);
}

/* The task: completes its set-up, waits for the go byte and becomes the program. */
_Noreturn static void begin(const struct task_setup *setup, const struct birth *birth) {
  struct fault fault = set_up(setup);
  if (is_fault(fault)) say_fault(birth->fault_fd, fault);
  signals_unblock();
  char word;
  if (read(birth->go_fd, &word, 1) != 1) _exit(NOT_THE_TASK);
  exec_program(setup->arguments->command);
  say_fault(birth->fault_fd, fault_at(STEP_EXEC));
}

/*
 * With a pid namespace the child becomes the init and forks the task. vfork copies no memory, and the init has nothing else to
 * do until exec. The task must not learn from it how the host is arranged.
 */
_Noreturn static void divide(const struct task_setup *setup, const struct birth *birth) {
  prctl(PR_SET_NAME, INIT_NAME);
  prctl(PR_SET_DUMPABLE, 0);
  setproctitle_hide(INIT_NAME);
  pid_t pid = vfork();
  if (pid == 0) {
    if (!init_say(birth->init_fd, (struct init_word){.kind = INIT_BEGINS})) say_fault(birth->fault_fd, fault_at(STEP_INIT));
    begin(setup, birth);
  }
  if (pid < 0) say_fault(birth->fault_fd, fault_at(STEP_INIT));
  init_run(pid, birth->init_fd);
}

_Noreturn static void become_task(const struct task_setup *setup, const struct birth *birth) {
  /* Kills us if the launcher dies. It may be dead already: then our parent is another process, or, in a pid namespace, the
   * go pipe has ended. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* The lock stands for a live launcher. We may outlive it for a moment. */
  task_dir_leave(setup->dir);
  if (birth->init_fd == ABSENT && getppid() != birth->parent) _exit(NOT_THE_TASK);
  struct fault fault = birth->has_joined ? no_fault() : cgroup_join(setup->cgroup);
  if (!is_fault(fault) && enters_early(setup->sandbox)) fault = enter_workdir(setup);
  if (!is_fault(fault)) fault = sandbox_enter(setup->sandbox, birth->egress_fd);
  if (is_fault(fault)) say_fault(birth->fault_fd, fault);
  if (birth->init_fd != ABSENT) divide(setup, birth);
  if (getppid() != birth->parent) _exit(NOT_THE_TASK);
  begin(setup, birth);
}

/* Forks into a cgroup; -1 if the kernel (before 5.7) or a filter does not allow that. */
static pid_t fork_into(int cgroup_fd, unsigned int flags) {
  struct clone_args birth = {
    .flags = CLONE_INTO_CGROUP | flags, .exit_signal = SIGCHLD, .cgroup = (unsigned int)cgroup_fd};
  return cgroup_fd == ABSENT ? -1 : (pid_t)syscall(SYS_clone3, &birth, sizeof birth);
}

static void close_fd(int *fd) {
  if (*fd != ABSENT) close(*fd);
  *fd = ABSENT;
}

static bool make_pipe(int *from, int *to) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  *from = ends[0];
  *to = ends[1];
  return true;
}

/* The caller closes the pipe ends, also after a fault. */
static struct fault fork_copy(struct task *task, const struct task_setup *setup, struct birth *birth) {
  unsigned int flags = sandbox_birth_flags(setup->sandbox);
  if (!make_pipe(&birth->go_fd, &task->go_fd) || !make_pipe(&task->fault_fd, &birth->fault_fd)) return fault_at(STEP_FORK);
  if ((flags & CLONE_NEWPID) != 0 && !init_channel(&task->init_fd, &birth->init_fd)) return fault_at(STEP_INIT);
  pid_t pid = fork_into(cgroup_birth_fd(setup->cgroup), flags);
  birth->has_joined = pid >= 0;
  if (pid < 0) pid = namespaces_fork(flags);
  if (pid < 0) return fault_at(flags == 0 ? STEP_FORK : STEP_NAMESPACES);
  birth->is_child = pid == 0;
  if (pid > 0) task->pid = task->main_pid = pid;
  return no_fault();
}

static int ms_of(int64_t ms) { return ms > INT_MAX ? INT_MAX : (int)ms; }

/* The child did not become the task. Kills it, and returns the fault that it reported, else `ours`. */
static struct fault fault_of_child(struct task *task, const struct task_setup *setup, struct fault ours) {
  kill(task->pid, SIGKILL);
  struct pollfd event = {.fd = task->fault_fd, .events = POLLIN};
  if (poll(&event, 1, ms_of(setup->arguments->give_up_ms)) <= 0) return ours;
  struct fault fault = task_read_fault(task);
  return is_fault(fault) ? fault : ours;
}

/* Waits until the init reports the task. That may take long, and an end may be requested meanwhile. */
static struct fault await_set_up(struct task *task, const struct task_setup *setup) {
  int64_t until_us = task->started_us + setup->arguments->wall_time_ms * US_PER_MS;
  int end_fd = signals_of_end();
  struct fault fault = no_fault();
  while (!task->is_set_up && task->asked == REASON_NONE && !is_fault(fault)) {
    int64_t left_us = until_us - monotonic_us();
    int left_ms = left_us <= 0 ? 0 : ms_of(left_us / US_PER_MS + 1);
    task->is_set_up = init_await_task(task->init_fd, end_fd, left_ms, &task->main_pid);
    if (task->is_set_up) continue;
    if (errno == EINTR) task->asked = end_fd == ABSENT ? REASON_NONE : signals_heed(end_fd);
    else if (errno == ETIMEDOUT) task->asked = REASON_WALL_TIME;
    else fault = fault_of_child(task, setup, fault_at(STEP_INIT));
  }
  close_fd(&end_fd);
  return fault;
}

static struct fault start_copy(struct task *task, const struct task_setup *setup) {
  struct birth birth = {.go_fd = ABSENT, .fault_fd = ABSENT, .init_fd = ABSENT, .egress_fd = ABSENT, .parent = getpid()};
  struct fault fault = no_fault();
  if (setup->arguments->egress_socket != NULL)
    fault = forwarder_start(&task->forwarder_pid, &birth.egress_fd, setup->arguments, setup->cgroup);
  if (!is_fault(fault)) fault = fork_copy(task, setup, &birth);
  if (birth.is_child) {
    close(task->go_fd);
    close(task->fault_fd);
    become_task(setup, &birth);
  }
  close_fd(&birth.go_fd);
  close_fd(&birth.fault_fd);
  close_fd(&birth.init_fd);
  close_fd(&birth.egress_fd);
  if (is_fault(fault)) return fault;
  task->is_set_up = task->init_fd == ABSENT;
  return task->is_set_up ? no_fault() : await_set_up(task, setup);
}

struct fault task_start(struct task *task, const struct task_setup *setup, struct identity *identity, struct record *record) {
  *task = (struct task){
    .pid = ABSENT, .main_pid = ABSENT, .forwarder_pid = ABSENT, .init_fd = ABSENT, .go_fd = ABSENT, .fault_fd = ABSENT};
  task->not_before = boot_ticks();
  task->started_us = monotonic_us();
  struct fault fault = start_copy(task, setup);
  if (is_fault(fault) || !task->is_set_up) return fault;
  fault = write_down(task, identity, record);
  if (!is_fault(fault)) return fault;
  close_fd(&task->go_fd); /* the program never starts */
  /* The init may have reaped a task whose set-up failed: then there is no process to write down. */
  return fault_of_child(task, setup, fault);
}

void task_go(struct task *task) {
  if (task->go_fd == ABSENT) return;
  ssize_t written = write(task->go_fd, "g", 1); /* fails if the child is gone */
  (void)written;
  close_fd(&task->go_fd);
}

struct fault task_read_fault(struct task *task) {
  struct fault fault = fault_receive(task->fault_fd);
  close_fd(&task->fault_fd);
  return fault;
}
