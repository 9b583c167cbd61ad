#include "base/children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pids.h"
#include "base/process-stat.h"

/* Children that are killed in a round, the youngest: they are the ones that may still be alive. */
#define KILLED_AT_ONCE 16384

static bool is_child(pid_t pid) {
  int64_t parent;
  return process_stat(pid, STAT_PARENT, &parent) && parent == getpid();
}

/* For kernels that do not list children (CONFIG_PROC_CHILDREN). */
static void search_children(pid_visitor *visit, void *context) {
  DIR *directory = opendir("/proc");
  if (directory == NULL) return;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    pid_t pid = atoi(entry->d_name);
    if (pid > 1 && is_child(pid)) visit(pid, context);
  }
  closedir(directory);
}

static void for_each_child(pid_visitor *visit, void *context) {
  if (!for_each_pid(AT_FDCWD, "/proc/thread-self/children", visit, context)) search_children(visit, context);
}

/* The last children that are meant, in the order of the list, which is that of their arrival. */
struct last_children {
  child_filter *is_meant;
  const void *context;
  int64_t count;
  pid_t pids[KILLED_AT_ONCE];
};

static void remember_child(pid_t pid, void *context) {
  struct last_children *children = context;
  if (children->is_meant != NULL && !children->is_meant(pid, children->context)) return;
  children->pids[children->count++ % KILLED_AT_ONCE] = pid;
}

/*
 * The youngest first, each with its process group, which contains only processes of the task. No fork slips through a signal
 * to a group. The group of a child that has just ended may contain a younger process.
 */
int64_t children_kill(child_filter *is_meant, const void *context) {
  static struct last_children children;
  children.is_meant = is_meant;
  children.context = context;
  children.count = 0;
  for_each_child(remember_child, &children);
  int64_t first = children.count > KILLED_AT_ONCE ? children.count - KILLED_AT_ONCE : 0;
  pid_t last_pgid = 0;
  for (int64_t i = children.count - 1; i >= first; i--) {
    pid_t pid = children.pids[i % KILLED_AT_ONCE];
    pid_t pgid = getpgid(pid);
    if (pgid > 1 && pgid != last_pgid && pgid != getpgrp()) kill(-pgid, SIGKILL);
    last_pgid = pgid;
    kill(pid, SIGKILL);
  }
  return children.count;
}

static void count_child(pid_t pid, void *context) {
  (void)pid;
  ++*(int64_t *)context;
}

int64_t children_count(void) {
  int64_t count = 0;
  for_each_child(count_child, &count);
  return count;
}

pid_t child_reap(int *status, bool may_wait) {
  for (;;) {
    pid_t pid = waitpid(-1, status, __WALL | (may_wait ? 0 : WNOHANG));
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0 || !WIFSTOPPED(*status)) return pid;
    /* A task may ask to be traced by its parent. We do not: it goes on, with the signal it stopped for. */
    ptrace(PTRACE_DETACH, pid, 0, WSTOPSIG(*status) == SIGTRAP ? 0 : WSTOPSIG(*status));
  }
}
