#include "sandbox/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
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

enum action { ACTION_ALLOW, ACTION_EPERM, ACTION_ENOSYS, ACTION_CLONE, ACTION_UNSHARE, ACTION_IOCTL, ACTION_SOCKET, ACTIONS };

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

/* Of processes that cannot be seen in a pid namespace. */
static const struct rule TRACING[] = {
  {SYS_ptrace, ACTION_EPERM},
  {SYS_process_vm_readv, ACTION_EPERM},
  {SYS_process_vm_writev, ACTION_EPERM},
  {SYS_kcmp, ACTION_EPERM},
#ifdef SYS_pidfd_getfd
  {SYS_pidfd_getfd, ACTION_EPERM},
#endif
#ifdef SYS_process_madvise
  {SYS_process_madvise, ACTION_EPERM},
#endif
};
#define TRACING_COUNT (sizeof TRACING / sizeof TRACING[0])

#define MAX_RULES (RULE_COUNT + TRACING_COUNT)
#define MAX_INSTRUCTIONS 255

struct program {
  unsigned short length;
  struct sock_filter code[MAX_INSTRUCTIONS];
  /* Where each action begins; they come last, so that all jumps go forward. */
  unsigned short labels[ACTIONS];
};

/* Jumps to an action have its number, with this bit, until it is known where that is. */
#define TO_ACTION 0x80

static struct sock_filter *emit(struct program *program, struct sock_filter instruction) {
  program->code[program->length] = instruction;
  return &program->code[program->length++];
}

static void load(struct program *program, size_t offset) {
  emit(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(struct program *program, unsigned int answer) {
  emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

/* Divides what is left of the rules in two, so that a call is judged in seven comparisons rather than sixty. */
static void search(struct program *program, const struct rule *rules, size_t count) {
  if (count == 1) {
    unsigned char action = (unsigned char)(TO_ACTION | rules->action);
    emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rules->number, action, TO_ACTION | ACTION_ALLOW));
    return;
  }
  size_t half = count / 2;
  unsigned short branch = program->length;
  emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, rules[half].number, 0, 0));
  search(program, rules, half);
  program->code[branch].jt = (unsigned char)(program->length - branch - 1);
  search(program, rules + half, count - half);
}

static void begin(struct program *program, enum action action) { program->labels[action] = program->length; }

#define ARGUMENT(number) offsetof(struct seccomp_data, args[number])

/* Refuses where any of `bits` is set. */
static void refuse_bits(struct program *program, size_t argument, unsigned int bits) {
  load(program, argument);
  emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, TO_ACTION | ACTION_EPERM, TO_ACTION | ACTION_ALLOW));
}

static void jump_if(struct program *program, unsigned int value, enum action action) {
  emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, (unsigned char)(TO_ACTION | action), 0));
}

static void add_actions(struct program *program) {
  begin(program, ACTION_CLONE);
  refuse_bits(program, ARGUMENT(0), NEW_NAMESPACES);
  begin(program, ACTION_UNSHARE);
  refuse_bits(program, ARGUMENT(0), NEW_NAMESPACES | CLONE_NEWTIME);
  begin(program, ACTION_IOCTL);
  load(program, ARGUMENT(1));
  jump_if(program, TIOCSTI, ACTION_EPERM);
  jump_if(program, TIOCLINUX, ACTION_EPERM);
  answer(program, SECCOMP_RET_ALLOW);
  begin(program, ACTION_SOCKET);
  load(program, ARGUMENT(0));
  jump_if(program, AF_UNIX, ACTION_ALLOW);
  jump_if(program, AF_INET, ACTION_ALLOW);
  jump_if(program, AF_INET6, ACTION_ALLOW);
  jump_if(program, AF_NETLINK, ACTION_ALLOW);
  begin(program, ACTION_EPERM);
  answer(program, SECCOMP_RET_ERRNO | EPERM);
  begin(program, ACTION_ENOSYS);
  answer(program, SECCOMP_RET_ERRNO | ENOSYS);
  begin(program, ACTION_ALLOW);
  answer(program, SECCOMP_RET_ALLOW);
}

static void resolve(const struct program *program, unsigned short at, unsigned char *jump) {
  if ((*jump & TO_ACTION) != 0) *jump = (unsigned char)(program->labels[*jump & ~TO_ACTION] - at - 1);
}

static void resolve_jumps(struct program *program) {
  for (unsigned short at = 0; at < program->length; at++) {
    struct sock_filter *instruction = &program->code[at];
    if (BPF_CLASS(instruction->code) != BPF_JMP) continue;
    resolve(program, at, &instruction->jt);
    resolve(program, at, &instruction->jf);
  }
}

static void sort(struct rule *rules, size_t count) {
  for (size_t i = 1; i < count; i++)
    for (size_t j = i; j > 0 && rules[j - 1].number > rules[j].number; j--) {
      struct rule larger = rules[j - 1];
      rules[j - 1] = rules[j];
      rules[j] = larger;
    }
}

static void build(struct program *program, const struct rule *rules, size_t count) {
  program->length = 0;
  load(program, offsetof(struct seccomp_data, arch));
  emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 0, TO_ACTION | ACTION_EPERM));
  load(program, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
  emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, TO_ACTION | ACTION_EPERM, 0));
#endif
  emit(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST_KNOWN_CALL, TO_ACTION | ACTION_ENOSYS, 0));
  search(program, rules, count);
  add_actions(program);
  resolve_jumps(program);
}

bool seccomp_filter(bool has_own_pids) {
  struct rule rules[MAX_RULES];
  size_t count = 0;
  for (size_t i = 0; i < RULE_COUNT; i++) rules[count++] = RULES[i];
  for (size_t i = 0; i < TRACING_COUNT && !has_own_pids; i++) rules[count++] = TRACING[i];
  sort(rules, count);
  struct program program;
  build(&program, rules, count);
  struct sock_fprog filter = {.len = program.length, .filter = program.code};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}
