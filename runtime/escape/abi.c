/* Other doors to the same calls: those of 32-bit programs have numbers of their own, which a filter may not know. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attempt.h"

/* Where the kernel has no such door, using it is a fault of the program. */
#define FAULTS (1UL << SIGSEGV | 1UL << SIGILL | 1UL << SIGBUS)

#ifdef __x86_64__

#define GETPID_OF_I386 20
#define X32_BIT 0x40000000L

static struct result use_i386(const struct baits *baits) {
  (void)baits;
  long given = GETPID_OF_I386;
  __asm__ volatile("int $0x80" : "+a"(given) : : "memory", "r8", "r9", "r10", "r11");
  errno = (int)-given;
  return judged((int)given < 0 ? -1 : 0);
}

static struct result use_x32(const struct baits *baits) {
  (void)baits;
  return judged(syscall(X32_BIT | SYS_getpid));
}

static struct result open_ports(const struct baits *baits) {
  (void)baits;
  return judged(syscall(SYS_ioperm, 0x80, 1, 1) == 0 ? 0 : syscall(SYS_iopl, 3));
}

#else

static struct result use_i386(const struct baits *baits) {
  (void)baits;
  return not_applicable("this machine is no x86-64");
}

static struct result use_x32(const struct baits *baits) { return use_i386(baits); }
static struct result open_ports(const struct baits *baits) { return use_i386(baits); }

#endif

static const struct attempt LIST[] = {
  {"abi_i386", "makes a call as a 32-bit program", use_i386, FAULTS, false},
  {"abi_x32", "makes a call as a program of the x32 kind", use_x32, FAULTS, false},
  {"io_ports", "speaks to devices without the kernel", open_ports, FAULTS, false},
};

const struct attempts abi_attempts = ATTEMPTS_OF(LIST);
