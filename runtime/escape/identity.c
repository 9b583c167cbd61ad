/* Becoming somebody else: users, groups, capabilities, programs that belong to root. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempt.h"

#define STATUS_BYTES 8192

static struct result become_root(const struct baits *baits) {
  (void)baits;
  if (geteuid() == 0) return opened("it is root already");
  return judged(setresuid(0, 0, 0));
}

static struct result become_other(const struct baits *baits) {
  (void)baits;
  uid_t other = geteuid() == 1 ? 2 : 1;
  return judged(setresuid(other, other, other));
}

static struct result change_groups(const struct baits *baits) {
  (void)baits;
  const gid_t groups[] = {0};
  if (setresgid(0, 0, 0) == 0) return opened("setresgid worked");
  return judged(setgroups(1, groups));
}

static struct result keep_groups(const struct baits *baits) {
  (void)baits;
  gid_t groups[64];
  int count = getgroups(COUNT_OF(groups), groups);
  for (int i = 0; i < count; i++) {
    char detail[DETAIL_BYTES];
    snprintf(detail, sizeof detail, "group %u", (unsigned)groups[i]);
    /* A group that has no name in the namespace is 65534 for us, and still counts on the host. */
    if (groups[i] != getegid()) return opened(detail);
  }
  return blocked("there are none");
}

static struct result have_capabilities(const struct baits *baits) {
  (void)baits;
  char status[STATUS_BYTES];
  int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, status, sizeof status - 1);
  if (length < 0) return opened("it cannot be seen");
  status[length] = '\0';
  static const char *const SETS[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
  for (size_t i = 0; i < COUNT_OF(SETS); i++) {
    const char *set = strstr(status, SETS[i]);
    if (set == NULL) continue;
    char detail[DETAIL_BYTES];
    snprintf(detail, sizeof detail, "%.24s", set);
    detail[strcspn(detail, "\n")] = '\0';
    for (char *tab = detail; (tab = strchr(tab, '\t')) != NULL;) *tab = ' ';
    if (strtoull(set + strlen(SETS[i]), NULL, 16) != 0) return opened(detail);
  }
  return blocked("all sets are empty");
}

static struct result raise_capabilities(const struct baits *baits) {
  (void)baits;
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{.effective = 1U << CAP_SYS_ADMIN, .permitted = 1U << CAP_SYS_ADMIN}};
  return judged(syscall(SYS_capset, &header, data));
}

static struct result gain_by_exec(const struct baits *baits) {
  (void)baits;
  return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? blocked("no_new_privs is set") : opened("no_new_privs is not set");
}

/* The effective uid of `program`, or -1 when it does not run. */
static long uid_of_program(const char *program) {
  int answer[2];
  if (pipe(answer) != 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    dup2(answer[1], STDOUT_FILENO);
    execl(program, program, "--show-uid", (char *)NULL);
    _exit(127);
  }
  close(answer[1]);
  char text[16] = "";
  ssize_t length = read(answer[0], text, sizeof text - 1);
  waitpid(pid, NULL, 0);
  return length > 0 ? atol(text) : -1;
}

static struct result judged_uid(long uid) {
  if (uid < 0) return blocked("it does not run");
  char detail[DETAIL_BYTES];
  snprintf(detail, sizeof detail, "it runs as %ld", uid);
  return uid == (long)geteuid() ? blocked(detail) : opened(detail);
}

static struct result run_setuid_bait(const struct baits *baits) {
  if (baits->setuid_program == NULL) return not_applicable("only root can lay out a program of root");
  return geteuid() == 0 ? opened("it is root already") : judged_uid(uid_of_program(baits->setuid_program));
}

static const struct attempt LIST[] = {
  {"become_root", "becomes root with setuid", become_root, 0, false},
  {"become_other", "becomes another user", become_other, 0, false},
  {"change_groups", "takes the groups of root", change_groups, 0, false},
  {"groups", "looks for groups that it has besides its own", keep_groups, 0, false},
  {"capabilities", "looks for capabilities that it has", have_capabilities, 0, false},
  {"raise_capabilities", "gives itself a capability", raise_capabilities, 0, false},
  {"no_new_privs", "looks whether a program could give it rights", gain_by_exec, 0, false},
  {"setuid_program", "runs a program that belongs to root and is setuid", run_setuid_bait, 0, false},
};

const struct attempts identity_attempts = ATTEMPTS_OF(LIST);
