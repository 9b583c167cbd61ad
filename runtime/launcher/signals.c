#include "signals.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Signals that the kernel knows. */
#define LAST_SIGNAL 64
#define KERNEL_SIGSET_BYTES 8

/* By the system calls: the C library keeps some signals for itself, and these may have been ignored as well. */
void signals_by_default(void) {
  struct {
    void *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
  } by_default = {0};
  for (int signal = 1; signal <= LAST_SIGNAL; signal++)
    syscall(SYS_rt_sigaction, signal, &by_default, NULL, KERNEL_SIGSET_BYTES);
}

bool signals_is_kill_asked(void) {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGNAL_OF_KILL) == 1;
}

void signals_unblock(void) {
  unsigned long none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, KERNEL_SIGSET_BYTES);
}
