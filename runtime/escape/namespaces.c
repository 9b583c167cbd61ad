/* New namespaces, where there are capabilities to be had, and those of others. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

int unshare(int flags);
int setns(int fd, int type);

static const struct {
  int flag;
  const char *name;
} KINDS[] = {
  {CLONE_NEWUSER, "user"}, {CLONE_NEWNS, "mnt"},   {CLONE_NEWPID, "pid"},       {CLONE_NEWNET, "net"},
  {CLONE_NEWIPC, "ipc"},   {CLONE_NEWUTS, "uts"}, {CLONE_NEWCGROUP, "cgroup"}, {CLONE_NEWTIME, "time"},
};

static struct result unshare_user(const struct baits *baits) {
  (void)baits;
  return judged(unshare(CLONE_NEWUSER));
}

static struct result unshare_others(const struct baits *baits) {
  (void)baits;
  for (size_t i = 1; i < COUNT_OF(KINDS); i++)
    if (unshare(KINDS[i].flag) == 0) return opened(KINDS[i].name);
  return refused();
}

/* Of a call that gave a child: ends it. */
static struct result judged_child(long pid) {
  if (pid == 0) _exit(0);
  struct result result = judged(pid);
  if (pid > 0) waitpid((pid_t)pid, NULL, __WALL);
  return result;
}

static struct result clone_user(const struct baits *baits) {
  (void)baits;
  return judged_child(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

static struct result clone_with(uint64_t flags) {
  struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD};
  return judged_child(syscall(SYS_clone3, &arguments, sizeof arguments));
}

static struct result clone3_user(const struct baits *baits) {
  (void)baits;
  return clone_with(CLONE_NEWUSER);
}

static struct result clone3_all(const struct baits *baits) {
  (void)baits;
  return clone_with(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET);
}

/* A kernel without the namespace has no file of it. */
static struct result join_of(pid_t pid) {
  int error = ENOENT;
  for (size_t i = 0; i < COUNT_OF(KINDS); i++) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, KINDS[i].name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && setns(fd, KINDS[i].flag) == 0) return opened(path);
    if (errno != ENOENT) error = errno;
    if (fd >= 0) close(fd);
  }
  errno = error;
  return refused();
}

static struct result join_init(const struct baits *baits) {
  (void)baits;
  return has_own_init() ? join_of(1) : not_applicable("PID 1 is the host's own: the bait stands for it");
}

static struct result join_bait(const struct baits *baits) {
  return baits->pid > 0 ? join_of(baits->pid) : not_applicable("no process was laid out");
}

static struct result join_by_pidfd(const struct baits *baits) {
  pid_t pid = has_own_init() ? 1 : baits->pid;
  if (pid <= 0) return not_applicable("no process was laid out");
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  return judged(fd < 0 ? fd : setns(fd, CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC));
}

static const struct attempt LIST[] = {
  {"unshare_user", "makes a user namespace, to be root in it", unshare_user, 0, false},
  {"unshare_others", "makes another namespace", unshare_others, 0, false},
  {"clone_user", "starts a child in a user namespace, with clone", clone_user, 0, false},
  {"clone3_user", "does so with clone3, whose flags no filter sees", clone3_user, 0, false},
  {"clone3_all", "does so with all namespaces at once", clone3_all, 0, false},
  {"setns_init", "joins the namespaces of PID 1", join_init, 0, false},
  {"setns_host", "joins those of a process of the host", join_bait, 0, false},
  {"setns_pidfd", "joins several at once by a pidfd", join_by_pidfd, 0, false},
};

const struct attempts namespace_attempts = ATTEMPTS_OF(LIST);
