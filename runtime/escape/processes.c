/* Processes of others: signals, debugging, their memory, their descriptors, their limits. Signals are number 0. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attempt.h"

/* Pids that are tried, from 2 on. */
#define SCANNED_PIDS 131072

static struct result kill_bait(const struct baits *baits) {
  if (baits->pid <= 0) return not_applicable("no process was laid out");
  /* In a pid namespace of our own it is a number like any other, and may be that of a process of ours. */
  if (kill(baits->pid, 0) != 0) return refused();
  return getsid(baits->pid) == getsid(0) ? blocked("the number is that of its own process") : opened("it may");
}

static struct result kill_any(const struct baits *baits) {
  for (pid_t pid = 2; pid <= SCANNED_PIDS; pid++) {
    if (pid == baits->starter_pid || kill(pid, 0) != 0 || getsid(pid) == getsid(0)) continue;
    char detail[DETAIL_BYTES];
    snprintf(detail, sizeof detail, "process %d", pid);
    return opened(detail);
  }
  return blocked("there is none");
}

static struct result kill_launcher(const struct baits *baits) {
  if (baits->starter_pid <= 1) return blocked("it is not to be seen");
  return judged(kill(baits->starter_pid, 0));
}

static struct result kill_init(const struct baits *baits) {
  (void)baits;
  if (!has_own_init()) return not_applicable("PID 1 is the host's own: the bait stands for it");
  if (kill(1, SIGKILL) != 0) return refused();
  usleep(50000);
  return kill(1, 0) == 0 || errno == EPERM ? blocked("it is ignored") : opened("it is gone");
}

/* What PTRACE_SEIZE gives does not stop anybody. */
static struct result seize(pid_t pid) {
  long given = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
  struct result result = judged(given);
  if (given == 0) ptrace(PTRACE_DETACH, pid, NULL, NULL);
  return result;
}

static struct result trace_init(const struct baits *baits) {
  (void)baits;
  return has_own_init() ? seize(1) : not_applicable("PID 1 is the host's own: the bait stands for it");
}

static struct result trace_bait(const struct baits *baits) {
  return baits->pid > 0 ? seize(baits->pid) : not_applicable("no process was laid out");
}

/* The one over us that we may meddle with: PID 1 of a sandbox, else what was laid out. */
static pid_t victim(const struct baits *baits) { return has_own_init() ? 1 : baits->pid; }

static struct result read_memory(const struct baits *baits) {
  pid_t pid = victim(baits);
  if (pid <= 0) return not_applicable("no process was laid out");
  char byte;
  struct iovec here = {&byte, 1}, there = {&byte, 1};
  ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);
  return judged(got < 0 && errno == EFAULT ? 0 : got); /* it was let in, and nothing is at this address */
}

static struct result take_descriptor(const struct baits *baits) {
  pid_t pid = victim(baits);
  if (pid <= 0) return not_applicable("no process was laid out");
  int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  return judged(pidfd < 0 ? pidfd : syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}

static struct result change_bait(const struct baits *baits) {
  if (baits->pid <= 0) return not_applicable("no process was laid out");
  if (getsid(baits->pid) == getsid(0)) return blocked("the number is that of its own process");
  cpu_set_t cpus;
  struct rlimit limit;
  if (sched_getaffinity(baits->pid, sizeof cpus, &cpus) == 0) return opened("it reads which processors it may use");
  if (prlimit(baits->pid, RLIMIT_NOFILE, NULL, &limit) == 0) return opened("it reads a limit");
  errno = 0;
  int priority = getpriority(PRIO_PROCESS, (id_t)baits->pid);
  if (errno == 0 && setpriority(PRIO_PROCESS, (id_t)baits->pid, priority) == 0) return opened("it sets its priority");
  return refused();
}

/* To what they are. */
static struct result change_init(const struct baits *baits) {
  (void)baits;
  if (!has_own_init()) return not_applicable("PID 1 is the host's own: the bait stands for it");
  struct rlimit limit;
  if (prlimit(1, RLIMIT_CPU, NULL, &limit) == 0 && prlimit(1, RLIMIT_CPU, &limit, NULL) == 0) return opened("it sets a limit");
  if (setpriority(PRIO_PROCESS, 1, 0) == 0 || setpriority(PRIO_PGRP, 1, 0) == 0) return opened("it sets its priority");
  struct sched_param none = {.sched_priority = 0};
  return judged(syscall(SYS_sched_setscheduler, 1, SCHED_OTHER, &none));
}

static struct result compare(const struct baits *baits) {
  pid_t pid = victim(baits);
  if (pid <= 0) return not_applicable("no process was laid out");
  return judged(syscall(SYS_kcmp, pid, getpid(), 0, 0, 0));
}

static const struct attempt LIST[] = {
  {"kill_host", "signals a process of the host", kill_bait, 0, false},
  {"kill_any", "looks for any process of others that it may signal", kill_any, 0, false},
  {"kill_launcher", "signals who started it", kill_launcher, 0, false},
  {"kill_init", "kills PID 1 of its namespace", kill_init, 0, false},
  {"trace_init", "attaches to PID 1 as a debugger", trace_init, 0, false},
  {"trace_host", "attaches to a process of the host", trace_bait, 0, false},
  {"read_memory", "reads the memory of another process", read_memory, 0, false},
  {"take_descriptor", "takes a descriptor out of another process", take_descriptor, 0, false},
  {"change_host_process", "reads or sets limits and priority of a process of the host", change_bait, 0, false},
  {"change_init", "sets limits and priority of PID 1 of its namespace", change_init, 0, false},
  {"compare", "compares what processes share, to guess addresses", compare, 0, false},
};

const struct attempts process_attempts = ATTEMPTS_OF(LIST);
