/*
 * taskmill-launcher: runs tasks for the runtime service (serve), one launcher for each task.
 *
 * Processes, each a child of the one before. serve may stop and start at any time, also in another version.
 *
 *   process       code        rights                         what it does
 *   serve         TypeScript  of the service                 writes requests, reads records, kills through pidfds
 *   fork server   server/     of the service                 forks a launcher per request, reaps launchers and orphans
 *   launcher      supervise/  of the service                 opens logs, creates the cgroup, enforces limits, writes the outcome
 *   init          supervise/  sandbox user, no capabilities  PID 1 of a pid namespace; reaps, passes signals on
 *   forwarder     supervise/  service user, no capabilities  beside the init, if the network of the sandbox has rules; passes
 *                                                            connections on to serve (forwarder.h)
 *   task          your program  of the service, or those of init and a seccomp filter
 *
 * The child of the launcher starts with the rights of the service. A fork server that is root keeps network namespaces for
 * sandboxes; the launcher then enters one before (networks.h). In a sandbox it enters its namespaces, joins its cgroup,
 * builds its file view, becomes the sandbox user and drops all capabilities (sandbox.h). With a pid namespace it then becomes
 * the init and forks the task. Tests start launchers without a fork server. `--probe` runs no task (probe.h).
 *
 * Pipes:
 *   requests   serve -> fork server, its standard input: launches (inbox.h). Its end means that serve is gone
 *   notify     launchers and fork server -> serve, a FIFO: one line per event (notify.h), as a hint to look at the records.
 *              Only `gone`, from the fork server, is never lost (job-table.h)
 *   go         launcher -> child: one byte, "your record is written". Its end means that the launcher is gone
 *   fault      child -> launcher: a struct fault. exec closes it, so its end means that the program runs
 *   egress     a pair of sockets, child -> forwarder: listeners of the sandbox; back: a struct fault (egress.h)
 *   init       a pair of sockets, init -> launcher: the task was forked, has ended, all is gone (init.h)
 *   output     task -> launcher, one for each of its streams, if texts in it have to be masked (masked-logs.h)
 *   stderr     of the fork server and its launchers: one line per fault, which serve reads (complaint.h)
 *
 * Files in the directory of a task, the only interface that outlives serve:
 *   lock                   flock on the directory. The fork server takes it before it forks; the launcher inherits it and
 *                          holds it until it ends. A launcher is alive if the lock is held; its pid proves nothing
 *   outcome.new            names the launcher, which can be signalled, and reserves space for the record
 *   started                identifies the task (identity.h); written before the program starts
 *   outcome                how the task ended (outcome.h); written when nothing of it is left, complete with its last line
 *   stdout.log stderr.log  the output of the task, opened for append by the task, or by the launcher where it is masked
 *   request.json           written by serve; its inode and time identify the directory (task-dir.h)
 *
 * The fork server also holds the lock of the data directory, so no other serve starts while it has requests left.
 *
 * Signals. Launcher and fork server block all signals and read those they handle from a signalfd; the task gets the defaults.
 *   SIGUSR2 to the launcher            serve requests the end of the task: reason kill
 *   TERM INT QUIT HUP to the launcher  anybody else does: reason terminated
 *   CHLD to launcher, fork server      a child has ended
 *   TERM and CONT to the task          it must end within its grace period; the init passes them on
 *   KILL to the task                   grace period over, too much output, or leftovers (reaper.h, cgroup.h)
 *   PDEATHSIG KILL                     child, init and forwarder die with the launcher, a pid namespace with its init
 *
 * Launcher and fork server are child subreapers: an orphan of a task becomes a child of its launcher, or, if that was killed,
 * of the fork server, which kills every child that is no launcher (orphans.h).
 *
 * Failures: what the task did is the outcome. What the launcher could not do is a fault, with its step and errno (fault.h). It
 * goes into the outcome once that has space, before that to stderr and as `failed` to the FIFO.
 *
 * The environment of a launcher is that of its task, and what to mask, so arguments, which everybody can read, hold no secrets. A launcher reads
 * no configuration. Its exit code is that of the task (outcome_exit_code), 125 if the task was not started, 123 if the outcome
 * could not be written.
 */
#include <signal.h>
#include <unistd.h>

#include "base/arguments.h"
#include "base/clock.h"
#include "base/complaint.h"
#include "base/descriptors.h"
#include "base/setproctitle.h"
#include "sandbox/cgroup.h"
#include "sandbox/probe.h"
#include "server/fork-server.h"
#include "supervise/masked-logs.h"
#include "supervise/reaper.h"
#include "supervise/notify.h"
#include "supervise/outcome.h"
#include "supervise/signals.h"
#include "supervise/supervise.h"
#include "supervise/task-dir.h"

extern char **environ;

static int refuse_usage(const struct text *complaint) {
  complain_of_usage(complaint);
  return EXIT_NOT_STARTED;
}

static int give_up(const struct arguments *arguments, struct fault fault, int exit_code) {
  complain_of_fault(arguments->task_id, fault);
  notify_failed(arguments, fault);
  return exit_code;
}

/* Starts the task and waits for its end. A fault means that the task was not started. */
static struct fault run_task(const struct task_setup *setup, struct masked_logs *logs, int signal_fd, struct record *record,
                             struct outcome *outcome) {
  struct task task;
  struct identity identity;
  bool is_kill_asked = signals_take_kill();
  struct fault fault = task_start(&task, setup, &identity, record);
  masked_logs_close_ends(logs, setup->dir);
  struct reaper reaper = {.main_pid = task.pid, .init_fd = task.init_fd, .forwarder_pid = task.forwarder_pid};
  if (is_fault(fault)) {
    int64_t give_up_us = monotonic_us() + setup->arguments->give_up_ms * US_PER_MS;
    if (task.pid != ABSENT || task.forwarder_pid != ABSENT) reaper_kill_all(&reaper, setup->cgroup, give_up_us);
    return fault;
  }
  struct supervision supervision = {
    .arguments = setup->arguments,
    .dir = setup->dir,
    .cgroup = setup->cgroup,
    .identity = &identity,
    .task = &task,
    .logs = logs,
    .reaper = &reaper,
    .asked = is_kill_asked ? REASON_KILL : task.asked,
    .started_us = task.started_us,
  };
  supervise(&supervision, signal_fd, outcome);
  return outcome->fault;
}

/* In the cgroup of the task: an init and a forwarder. */
static int processes_of_ours(const struct sandbox *sandbox) {
  return (sandbox_has(sandbox, FEATURE_PID) ? 1 : 0) + (sandbox->arguments->egress_socket != NULL ? 1 : 0);
}

/* Runs once the outcome has space, so each fault goes into it. */
static struct fault launch(const struct arguments *arguments, struct task_dir *dir, int signal_fd, struct record *record,
                           struct outcome *outcome) {
  struct cgroup cgroup = {.pids_fd = ABSENT, .memory_fd = ABSENT};
  static struct masked_logs logs = NO_MASKED_LOGS; /* static, so that a leak checker finds its memory */
  struct fault fault = task_dir_open_logs(dir, arguments->sandbox_uid);
  if (!is_fault(fault)) fault = masked_logs_open(&logs, arguments, dir);
  if (!is_fault(fault)) fault = task_dir_open_stdin(dir, arguments->stdin_name);
  if (!is_fault(fault)) fault = reaper_become();
  struct sandbox sandbox = sandbox_of(arguments);
  if (!is_fault(fault)) fault = cgroup_create(&cgroup, arguments, processes_of_ours(&sandbox));
  struct task_setup setup = {.arguments = arguments, .dir = dir, .cgroup = &cgroup, .sandbox = &sandbox};
  if (!is_fault(fault)) fault = run_task(&setup, &logs, signal_fd, record, outcome);

  masked_logs_finish(&logs);
  outcome->cgroup_usage = cgroup_read(&cgroup);
  outcome->stdout_bytes = log_bytes(dir->stdout_fd);
  outcome->stderr_bytes = log_bytes(dir->stderr_fd);
  cgroup_remove(&cgroup); /* if it cannot be removed, serve removes it later */
  return fault;
}

/* A fork server, which is then our parent, exits with its service. */
static bool is_service_there(const struct arguments *arguments) {
  return arguments->fork_server_pid != ABSENT && getppid() == arguments->fork_server_pid;
}

/* Runs one task. Returns the exit code of the launcher. */
static int serve(const struct arguments *arguments, int signal_fd) {
  struct task_dir dir;
  struct record record;
  struct fault fault = task_dir_open(&dir, arguments);
  if (!is_fault(fault)) fault = record_reserve(&record, dir.fd);
  if (is_fault(fault)) return give_up(arguments, fault, EXIT_NOT_STARTED);

  struct outcome outcome = {.finished_ms = epoch_ms(), .disk_bytes = ABSENT};
  outcome.fault = launch(arguments, &dir, signal_fd, &record, &outcome);
  if (is_fault(outcome.fault)) {
    outcome.how = HOW_NOT_STARTED;
    outcome.mount = mount_list_name(&arguments->mounts, outcome.fault);
    complain_of_fault(arguments->task_id, outcome.fault);
  }
  fault = record_end(&record, &outcome);
  if (is_fault(fault))
    return give_up(arguments, fault, outcome.how == HOW_NOT_STARTED ? EXIT_NOT_STARTED : EXIT_OUTCOME_LOST);
  notify_ended(arguments);

  /* A running service stores and syncs the outcome itself. Otherwise nobody waits for our sync. */
  fault = is_service_there(arguments) ? no_fault() : record_sync(&record);
  if (is_fault(fault)) complain_of_fault(arguments->task_id, fault);
  return outcome_exit_code(&outcome);
}

int main(int argc, char **argv) {
  /* With SIGCHLD ignored, the kernel would drop exit statuses. A task inherits ignored signals. */
  signals_by_default();
  setproctitle_find(argv, environ);
  if (argc > 1 && probe_is_wanted(argv[1])) return probe(argv);
  struct arguments arguments;
  struct text complaint;
  text_clear(&complaint);
  if (fork_server_is_wanted(argv)) {
    bool is_launcher = fork_server_run(argv, &arguments, &complaint);
    if (!is_launcher) return complaint.length == 0 ? 0 : refuse_usage(&complaint);
  } else {
    char **kept = setproctitle_copy(argv);
    if (kept == NULL) text_set(&complaint, "no memory for its arguments");
    if (kept == NULL || !arguments_parse(&arguments, kept, &complaint)) return refuse_usage(&complaint);
  }

  struct fault fault = descriptors_tidy((int)arguments.lock_fd, (int)arguments.notify_fd);
  int signal_fd = signals_watch();
  if (!is_fault(fault) && signal_fd == ABSENT) fault = fault_at(STEP_SUPERVISION);
  return is_fault(fault) ? give_up(&arguments, fault, EXIT_NOT_STARTED) : serve(&arguments, signal_fd);
}
