/* Calls that concern the whole machine, or that namespaces do not divide: each with arguments that change nothing. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "attempt.h"

#define SYSLOG_ACTION_READ_ALL 3

/* Of a call that cannot succeed: who is allowed to make it is told another reason than EPERM. */
static struct result judged_reason(long given) {
  if (given < 0 && errno != EPERM && errno != ENOSYS && errno != EACCES) return opened("it would be allowed");
  return judged(given);
}

static struct result load_bpf(const struct baits *baits) {
  (void)baits;
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = attributes.value_size = 4;
  attributes.max_entries = 1;
  return judged(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes));
}

static struct result measure(const struct baits *baits) {
  (void)baits;
  struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
                                       .size = sizeof attributes,
                                       .config = PERF_COUNT_SW_DUMMY,
                                       .disabled = 1,
                                       .exclude_kernel = 1};
  return judged(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

static struct result read_log(const struct baits *baits) {
  (void)baits;
  char byte;
  return judged(klogctl(SYSLOG_ACTION_READ_ALL, &byte, 1));
}

static struct result handle_faults(const struct baits *baits) {
  (void)baits;
  long fd = syscall(SYS_userfaultfd, O_CLOEXEC);
  return judged(fd >= 0 ? fd : syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
}

static struct result rename_host(const struct baits *baits) {
  (void)baits;
  struct utsname names;
  if (uname(&names) != 0) return refused();
  if (sethostname(names.nodename, strlen(names.nodename)) == 0) return opened("it worked");
  return judged(setdomainname(names.domainname, strlen(names.domainname)));
}

static struct result raise_limits(const struct baits *baits) {
  (void)baits;
  static const struct {
    int resource;
    const char *name;
  } LIMITS[] = {{RLIMIT_NOFILE, "descriptors"}, {RLIMIT_CORE, "core dumps"}, {RLIMIT_MEMLOCK, "locked memory"}};
  for (size_t i = 0; i < COUNT_OF(LIMITS); i++) {
    struct rlimit limit;
    if (getrlimit(LIMITS[i].resource, &limit) != 0) return refused();
    if (limit.rlim_max == RLIM_INFINITY) return opened(LIMITS[i].name);
    limit.rlim_max++;
    if (setrlimit(LIMITS[i].resource, &limit) == 0) return opened(LIMITS[i].name);
  }
  return refused();
}

static struct result dump_core(const struct baits *baits) {
  (void)baits;
  struct rlimit limit;
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return refused();
  return limit.rlim_max <= 1 ? blocked("its limit is 0") : opened("the kernel would write its memory to the host");
}

static struct result queue_calls(const struct baits *baits) {
  (void)baits;
  struct io_uring_params parameters;
  memset(&parameters, 0, sizeof parameters);
  return judged(syscall(SYS_io_uring_setup, 1, &parameters));
}

static struct result read_keys(const struct baits *baits) {
  (void)baits;
  return judged(syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -4 /* of the user */, 1, 0, 0));
}

static struct result add_key(const struct baits *baits) {
  (void)baits;
  return judged(syscall(SYS_add_key, "user", "taskmill-escape", "x", 1, -2 /* of this process */));
}

static struct result ask_key(const struct baits *baits) {
  (void)baits;
  return judged_reason(syscall(SYS_request_key, "user", "taskmill-escape", NULL, -2));
}

/* With a number that nobody restarts by. */
static struct result restart_machine(const struct baits *baits) {
  (void)baits;
  return judged_reason(syscall(SYS_reboot, 0, 0, 0, NULL));
}

static struct result load_module(const struct baits *baits) {
  (void)baits;
  struct result result = judged_reason(syscall(SYS_finit_module, -1, "", 0));
  return result.verdict == OPEN ? result : judged_reason(syscall(SYS_init_module, NULL, 0, ""));
}

static struct result load_kernel(const struct baits *baits) {
  (void)baits;
  return judged_reason(syscall(SYS_kexec_load, 0, 0, NULL, ~0UL));
}

static struct result swap_memory(const struct baits *baits) {
  (void)baits;
  return judged_reason(syscall(SYS_swapoff, "/taskmill-escape-nothing"));
}

static struct result account(const struct baits *baits) {
  (void)baits;
  return judged_reason(syscall(SYS_acct, "/taskmill-escape-nothing"));
}

static struct result set_clock(const struct baits *baits) {
  (void)baits;
  struct timex times = {.modes = 0};
  if (adjtimex(&times) < 0) return refused();
  times.modes = ADJ_TICK; /* as long as it is */
  return judged(adjtimex(&times));
}

static struct result take_priority(const struct baits *baits) {
  (void)baits;
  errno = 0;
  int priority = getpriority(PRIO_PROCESS, 0);
  return judged(setpriority(PRIO_PROCESS, 0, priority - 1));
}

/* Newer than the C library. */
#define CALL_QUOTACTL_FD 443

/* Of files that have no quota: who may ask at all is told another reason than EPERM. */
static struct result set_quota(const struct baits *baits) {
  (void)baits;
  int command = QCMD(Q_SETQUOTA, USRQUOTA);
  struct result result = judged_reason(syscall(SYS_quotactl, command, "/taskmill-escape-nothing", 0, NULL));
  return result.verdict == OPEN ? result : judged_reason(syscall(CALL_QUOTACTL_FD, -1, command, 0, NULL));
}

/* The first call that the sandbox cannot know (launch/c/sandbox/seccomp.c), and those that kernels may have in the years to come. */
#define FIRST_UNKNOWN_CALL 470
#define LAST_UNKNOWN_CALL 700

/* With arguments that no call can use. */
static struct result make_newer_calls(const struct baits *baits) {
  (void)baits;
  for (long call = FIRST_UNKNOWN_CALL; call <= LAST_UNKNOWN_CALL; call++) {
    if (syscall(call, -1L, -1L, -1L, -1L, -1L, -1L) < 0 && errno == ENOSYS) continue;
    char detail[DETAIL_BYTES];
    snprintf(detail, sizeof detail, "the kernel was asked for call %ld", call);
    return opened(detail);
  }
  errno = ENOSYS;
  return refused();
}

static const struct attempt LIST[] = {
  {"bpf", "loads a map into the kernel", load_bpf, 0, false},
  {"perf", "has the kernel measure", measure, 0, false},
  {"kernel_log", "reads the log of the kernel", read_log, 0, false},
  {"userfaultfd", "holds the kernel up at a page of its memory", handle_faults, 0, false},
  {"io_uring", "queues calls that no filter sees", queue_calls, 0, false},
  {"keyring_read", "finds the keys of the user", read_keys, 0, false},
  {"keyring_add", "adds a key", add_key, 0, false},
  {"keyring_request", "asks for a key, which may start a program on the host", ask_key, 0, false},
  {"hostname", "sets the name of the host", rename_host, 0, false},
  {"clock", "sets the clock", set_clock, 0, false},
  {"reboot", "restarts the machine", restart_machine, 0, false},
  {"kernel_module", "loads a module", load_module, 0, false},
  {"kexec", "loads another kernel", load_kernel, 0, false},
  {"swapoff", "takes the swap space away", swap_memory, 0, false},
  {"disk_quota", "sets a disk quota", set_quota, 0, false},
  {"newer_calls", "makes calls that are newer than the sandbox", make_newer_calls, 0, false},
  {"accounting", "has the kernel write down every process", account, 0, false},
  {"priority", "puts itself before others", take_priority, 0, false},
  {"raise_limits", "raises its limits", raise_limits, 0, false},
  {"core_dump", "has its memory written to the host when it crashes", dump_core, 0, false},
};

const struct attempts kernel_attempts = ATTEMPTS_OF(LIST);
