/*
 * The least that a sandbox costs: a child in new namespaces (user, mount, pid, uts, ipc) that becomes the program, and a
 * parent that waits for it. No root, no mounts, no limits: it isolates nothing.
 *
 * Without a C library, whose start would be a part of it.
 *
 * Usage: floor PROGRAM [ARG...]
 */
#define CLONE_NEWNS 0x00020000L
#define CLONE_NEWUTS 0x04000000L
#define CLONE_NEWIPC 0x08000000L
#define CLONE_NEWUSER 0x10000000L
#define CLONE_NEWPID 0x20000000L
#define CLONE_NEWNET 0x40000000L
#define SIGCHLD 17L

#if defined(__x86_64__)
#define NR_CLONE 56L
#define NR_EXECVE 59L
#define NR_EXIT_GROUP 231L
#define NR_WAIT4 61L
static long call(long number, long a, long b, long c, long d, long e) {
  long given;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall"
                   : "=a"(given)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return given;
}
__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call run\n");
#elif defined(__aarch64__)
#define NR_CLONE 220L
#define NR_EXECVE 221L
#define NR_EXIT_GROUP 94L
#define NR_WAIT4 260L
static long call(long number, long a, long b, long c, long d, long e) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}
__asm__(".globl _start\n_start:\n  mov x29, #0\n  mov x0, sp\n  bl run\n");
#endif

/* The stack as the kernel leaves it: the number of arguments, then they. */
__attribute__((noreturn, used)) void run(const long *stack) {
  const long *arguments = stack + 1;
  const long no_environment[] = {0};
  const long namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET;
  long pid = call(NR_CLONE, namespaces | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) {
    call(NR_EXECVE, arguments[1], (long)(arguments + 1), (long)no_environment, 0, 0);
    call(NR_EXIT_GROUP, 127, 0, 0, 0, 0);
  }
  int status = 0;
  long waited = pid < 0 ? pid : call(NR_WAIT4, pid, (long)&status, 0, 0, 0);
  call(NR_EXIT_GROUP, waited == pid && pid > 0 ? (status >> 8 & 0xff) | (status & 0x7f) : 125, 0, 0, 0, 0);
  __builtin_unreachable();
}
