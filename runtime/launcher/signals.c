#include "signals.h"

#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
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

bool signals_mean_task(int code, int value, pid_t pid) { return code != SI_QUEUE || value == pid; }

bool signals_take_kill(pid_t pid) {
  sigset_t kill_signal;
  sigemptyset(&kill_signal);
  sigaddset(&kill_signal, SIGNAL_OF_KILL);
  siginfo_t info;
  struct timespec no_time = {0, 0};
  return sigtimedwait(&kill_signal, &info, &no_time) == SIGNAL_OF_KILL &&
         signals_mean_task(info.si_code, info.si_value.sival_int, pid);
}

void signals_forget(int signal_fd) {
  struct signalfd_siginfo info;
  while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) continue;
}

void signals_unblock(void) {
  unsigned long none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, KERNEL_SIGSET_BYTES);
}
