/*
 * A library that is preloaded into User-Mode Linux on processors with AMX.
 *
 * User-Mode Linux 6.1 sets the registers of a guest process from a buffer of 2,696 bytes, the extended state of a processor
 * with AVX-512. The kernel of the machine accepts only the complete state, which has 11,008 bytes with AMX, so the guest
 * panics at its first process. This library replaces ptrace: it reads the current state of the process, overwrites the
 * part that the guest has set, and writes the whole. The rest is AMX state, which no process of the guest uses: a process
 * has to request it (arch_prctl).
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Larger than the extended state of any processor so far. */
#define MAX_STATE_BYTES (64 * 1024)

static long set_part_of_state(pid_t pid, const struct iovec *part) {
  static char state[MAX_STATE_BYTES];
  struct iovec whole = {state, sizeof state};
  if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &whole) != 0) return -1;
  if (part->iov_len > whole.iov_len) {
    errno = EINVAL;
    return -1;
  }
  memcpy(state, part->iov_base, part->iov_len);
  return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &whole);
}

/* As in libc, PEEK requests return the word. */
long ptrace(enum __ptrace_request request, ...) {
  va_list rest;
  va_start(rest, request);
  pid_t pid = va_arg(rest, pid_t);
  void *address = va_arg(rest, void *);
  void *data = va_arg(rest, void *);
  va_end(rest);
  if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
    long word;
    return syscall(SYS_ptrace, request, pid, address, &word) < 0 ? -1 : (errno = 0, word);
  }
  long result = syscall(SYS_ptrace, request, pid, address, data);
  if (result == 0 || request != PTRACE_SETREGSET || address != (void *)NT_X86_XSTATE) return result;
  return set_part_of_state(pid, data);
}
