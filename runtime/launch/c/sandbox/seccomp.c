#include "sandbox/seccomp.h"

#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
/* From here on the numbers are those of the x32 ABI. */
#define X32_BIT 0x40000000
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* In the flags of clone() the bit of a time namespace is part of the signal. */
#define NEW_NAMESPACES                                                                                                 \
  (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

enum action {
  ACTION_ALLOW,
  ACTION_EPERM,
  ACTION_ENOSYS,
  ACTION_CLONE,
  ACTION_UNSHARE,
  ACTION_IOCTL,
  ACTION_SOCKET,
  ACTION_LIMIT,
  ACTION_PRIORITY,
  ACTION_IO_PRIORITY,
};

struct rule {
  unsigned int number;
  enum action action;
};

/* Newer than the C library. */
#define CALL_QUOTACTL_FD 443
#define CALL_OPEN_TREE_ATTR 467

/*
 * The newest call that was looked at for this list: file_setattr of Linux 6.17, the same number on both architectures. What
 * later kernels add is answered ENOSYS, as by an older kernel: programs have a way without it. To raise the number, read
 * what each call up to it can do, and add the rules that it needs.
 */
#define NEWEST_KNOWN_CALL 469

static const struct rule RULES[] = {
  /* Namespaces and mounts. */
  {SYS_clone, ACTION_CLONE},
  {SYS_clone3, ACTION_ENOSYS},
  {SYS_unshare, ACTION_UNSHARE},
  {SYS_setns, ACTION_EPERM},
  {SYS_chroot, ACTION_EPERM},
  {SYS_pivot_root, ACTION_EPERM},
  {SYS_mount, ACTION_EPERM},
  {SYS_umount2, ACTION_EPERM},
  {SYS_open_tree, ACTION_EPERM},
  {SYS_move_mount, ACTION_EPERM},
  {SYS_fsopen, ACTION_EPERM},
  {SYS_fsconfig, ACTION_EPERM},
  {SYS_fsmount, ACTION_EPERM},
  {SYS_fspick, ACTION_EPERM},
  {SYS_mount_setattr, ACTION_EPERM},
  {CALL_OPEN_TREE_ATTR, ACTION_EPERM},
  {SYS_open_by_handle_at, ACTION_EPERM},
  /* Keyrings are not part of any namespace but that of users. */
  {SYS_add_key, ACTION_EPERM},
  {SYS_request_key, ACTION_EPERM},
  {SYS_keyctl, ACTION_EPERM},
  /* A way around every filter, and the source of many holes. */
  {SYS_io_uring_setup, ACTION_ENOSYS},
  {SYS_io_uring_enter, ACTION_ENOSYS},
  {SYS_io_uring_register, ACTION_ENOSYS},
  /* Parts of the kernel that no task needs. */
  {SYS_bpf, ACTION_EPERM},
  {SYS_perf_event_open, ACTION_EPERM},
  {SYS_userfaultfd, ACTION_EPERM},
  {SYS_fanotify_init, ACTION_EPERM},
  {SYS_syslog, ACTION_EPERM},
  {SYS_acct, ACTION_EPERM},
  {SYS_quotactl, ACTION_EPERM},
  {CALL_QUOTACTL_FD, ACTION_EPERM},
  {SYS_swapon, ACTION_EPERM},
  {SYS_swapoff, ACTION_EPERM},
  {SYS_reboot, ACTION_EPERM},
  {SYS_init_module, ACTION_EPERM},
  {SYS_finit_module, ACTION_EPERM},
  {SYS_delete_module, ACTION_EPERM},
  {SYS_kexec_load, ACTION_EPERM},
  {SYS_kexec_file_load, ACTION_EPERM},
  {SYS_sethostname, ACTION_EPERM},
  {SYS_setdomainname, ACTION_EPERM},
  {SYS_settimeofday, ACTION_EPERM},
  {SYS_clock_settime, ACTION_EPERM},
  {SYS_vhangup, ACTION_EPERM},
#ifdef __x86_64__
  {SYS_iopl, ACTION_EPERM},
  {SYS_ioperm, ACTION_EPERM},
  {SYS_modify_ldt, ACTION_EPERM},
  {SYS_uselib, ACTION_EPERM},
#endif
  /* Terminals that are somebody else's, and sockets that leave the machine by other ways than the network. */
  {SYS_ioctl, ACTION_IOCTL},
  {SYS_socket, ACTION_SOCKET},
  {SYS_socketpair, ACTION_SOCKET},
};
#define RULE_COUNT (sizeof RULES / sizeof RULES[0])

/*
 * What a task may do to processes of its user. The init, process 1 of a pid namespace, is one: a task could have it wait behind
 * all others, or killed for its use of the processor, and the end of the task would come late, or with its outcome lost.
 * Without a pid namespace, a service that is not root has the user of its tasks.
 */
static const struct rule INIT[] = {
  {SYS_prlimit64, ACTION_LIMIT},           {SYS_sched_setscheduler, ACTION_LIMIT}, {SYS_sched_setparam, ACTION_LIMIT},
  {SYS_sched_setattr, ACTION_LIMIT},       {SYS_sched_setaffinity, ACTION_LIMIT},  {SYS_setpriority, ACTION_PRIORITY},
  {SYS_ioprio_set, ACTION_IO_PRIORITY},
};
#define INIT_COUNT (sizeof INIT / sizeof INIT[0])
#define INIT_PID 1

/* From linux/ioprio.h, which not every system has. */
#define IO_PRIORITY_OF_USER 3

/* The numbers from `first` on, up to the next span, get one answer. */
struct span {
  unsigned int first;
  enum action action;
};

/* Every rule may begin a span, and end it. Before them and behind them are numbers that no rule names. */
#define MAX_SPANS (2 * (RULE_COUNT + INIT_COUNT) + 3)

/* Two instructions for most spans, eight for a rule at most. */
#define MAX_INSTRUCTIONS (2 * MAX_SPANS + 96)

struct program {
  unsigned short length;
  struct sock_filter code[MAX_INSTRUCTIONS];
};

#define LOAD (BPF_LD | BPF_W | BPF_ABS)
#define IF_EQUAL (BPF_JMP | BPF_JEQ | BPF_K)
#define IF_AT_LEAST (BPF_JMP | BPF_JGE | BPF_K)
#define IF_ANY_BIT (BPF_JMP | BPF_JSET | BPF_K)
#define ANSWER (BPF_RET | BPF_K)
#define ARGUMENT(number) offsetof(struct seccomp_data, args[number])

static void emit(struct program *program, unsigned short code, size_t value, unsigned char skip_if, unsigned char skip_else) {
  program->code[program->length++] = (struct sock_filter){code, skip_if, skip_else, (uint32_t)value};
}

static void answer(struct program *program, unsigned int error) {
  emit(program, ANSWER, error == 0 ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | error, 0, 0);
}

static void refuse_bits(struct program *program, unsigned int bits) {
  emit(program, LOAD, ARGUMENT(0), 0, 0);
  emit(program, IF_ANY_BIT, bits, 0, 1);
  answer(program, EPERM);
  answer(program, 0);
}

/* Compares an argument with `values`; those that are equal get one answer, all others the other. */
static void compare(struct program *program, size_t argument, const unsigned int values[], unsigned char count,
                    unsigned int if_equal, unsigned int otherwise) {
  emit(program, LOAD, argument, 0, 0);
  for (unsigned char i = 0; i < count; i++) emit(program, IF_EQUAL, values[i], (unsigned char)(count - i), 0);
  answer(program, otherwise);
  answer(program, if_equal);
}

/* Refuses a priority for the init: by its number, of a process or of a group, or for all processes of a user. */
static void refuse_priority(struct program *program, unsigned int of_user) {
  emit(program, LOAD, ARGUMENT(0), 0, 0);
  emit(program, IF_EQUAL, of_user, 2, 0);
  emit(program, LOAD, ARGUMENT(1), 0, 0);
  emit(program, IF_EQUAL, INIT_PID, 0, 1);
  answer(program, EPERM);
  answer(program, 0);
}

static void act(struct program *program, enum action action) {
  static const unsigned int INIT_ALONE[] = {INIT_PID};
  static const unsigned int INPUT_FAKERS[] = {TIOCSTI, TIOCLINUX};
  static const unsigned int FAMILIES[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
  switch (action) {
    case ACTION_ALLOW: answer(program, 0); break;
    case ACTION_EPERM: answer(program, EPERM); break;
    case ACTION_ENOSYS: answer(program, ENOSYS); break;
    case ACTION_CLONE: refuse_bits(program, NEW_NAMESPACES); break;
    case ACTION_UNSHARE: refuse_bits(program, NEW_NAMESPACES | CLONE_NEWTIME); break;
    case ACTION_IOCTL: compare(program, ARGUMENT(1), INPUT_FAKERS, 2, EPERM, 0); break;
    case ACTION_SOCKET: compare(program, ARGUMENT(0), FAMILIES, 4, 0, EPERM); break;
    case ACTION_LIMIT: compare(program, ARGUMENT(0), INIT_ALONE, 1, EPERM, 0); break;
    case ACTION_PRIORITY: refuse_priority(program, PRIO_USER); break;
    case ACTION_IO_PRIORITY: refuse_priority(program, IO_PRIORITY_OF_USER); break;
  }
}

static int by_number(const void *one, const void *other) {
  unsigned int first = ((const struct rule *)one)->number, second = ((const struct rule *)other)->number;
  return first < second ? -1 : first > second;
}

struct spans {
  size_t count;
  struct span spans[MAX_SPANS];
};

/* Neighbours with the same answer are one span. An empty span is replaced. */
static void add_span(struct spans *spans, unsigned int first, enum action action) {
  if (spans->count > 0 && spans->spans[spans->count - 1].first == first) spans->count--;
  if (spans->count > 0 && spans->spans[spans->count - 1].action == action) return;
  spans->spans[spans->count++] = (struct span){first, action};
}

/* All numbers: those of the rules, and what is allowed between them. */
static void find_spans(struct spans *spans) {
  struct rule rules[RULE_COUNT + INIT_COUNT];
  memcpy(rules, RULES, sizeof RULES);
  memcpy(rules + RULE_COUNT, INIT, sizeof INIT);
  qsort(rules, RULE_COUNT + INIT_COUNT, sizeof *rules, by_number);
  spans->count = 0;
  add_span(spans, 0, ACTION_ALLOW);
  for (size_t i = 0; i < RULE_COUNT + INIT_COUNT; i++) {
    add_span(spans, rules[i].number, rules[i].action);
    add_span(spans, rules[i].number + 1, ACTION_ALLOW);
  }
  add_span(spans, NEWEST_KNOWN_CALL + 1, ACTION_ENOSYS);
#ifdef X32_BIT
  add_span(spans, X32_BIT, ACTION_EPERM);
#endif
}

/*
 * A binary search. From Linux 5.11 the kernel asks no filter for a call that is always allowed: when a filter is installed, it
 * runs it for each number. With one comparison per rule, that takes 0.1 ms more. A jump reaches 255 instructions.
 */
static bool search(struct program *program, const struct span *spans, size_t count) {
  if (count == 1) {
    act(program, spans->action);
    return true;
  }
  size_t half = count / 2;
  struct sock_filter *branch = &program->code[program->length];
  emit(program, IF_AT_LEAST, spans[half].first, 0, 0);
  if (!search(program, spans, half)) return false;
  size_t skipped = (size_t)(&program->code[program->length] - branch - 1);
  branch->jt = (unsigned char)skipped;
  return skipped <= UCHAR_MAX && search(program, spans + half, count - half);
}

/* Loads the number of the call. Numbers of another architecture mean other calls. */
static void begin(struct program *program) {
  emit(program, LOAD, offsetof(struct seccomp_data, arch), 0, 0);
  emit(program, IF_EQUAL, NATIVE, 1, 0);
  answer(program, EPERM);
  emit(program, LOAD, offsetof(struct seccomp_data, nr), 0, 0);
}

static bool install(const struct program *program) {
  struct sock_fprog filter = {.len = program->length, .filter = (struct sock_filter *)(uintptr_t)program->code};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

bool seccomp_filter(void) {
  struct program program = {.length = 0};
  struct spans spans;
  find_spans(&spans);
  begin(&program);
  return search(&program, spans.spans, spans.count) && install(&program);
}

bool seccomp_allow_only(const unsigned int calls[], size_t count) {
  static const unsigned int UNIX_ONLY[] = {AF_UNIX};
  struct program program = {.length = 0};
  begin(&program);
  for (size_t i = 0; i < count; i++) {
    bool is_socket = calls[i] == SYS_socket;
    emit(&program, IF_EQUAL, calls[i], 0, is_socket ? 4 : 1);
    if (is_socket) compare(&program, ARGUMENT(0), UNIX_ONLY, 1, 0, EPERM);
    else answer(&program, 0);
  }
  emit(&program, ANSWER, SECCOMP_RET_KILL_PROCESS, 0, 0);
  return install(&program);
}
