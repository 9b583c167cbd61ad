#include "supervise/signals.h"

#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Signals that the kernel knows. */
#define LAST_SIGNAL 64
#define KERNEL_SIGSET_BYTES 8

/* Uses the system call, because the C library reserves some signals, which may be ignored, too. */
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

bool signals_take_kill(void) {
  sigset_t kill_signal;
  sigemptyset(&kill_signal);
  sigaddset(&kill_signal, SIGNAL_OF_KILL);
  struct timespec no_time = {0, 0};
  return sigtimedwait(&kill_signal, NULL, &no_time) == SIGNAL_OF_KILL;
}

enum reason signals_heed(int signal_fd) {
  struct signalfd_siginfo info;
  enum reason reason = REASON_NONE;
  while (read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
    if (info.ssi_signo == SIGNAL_OF_KILL) reason = REASON_KILL;
    else if (info.ssi_signo != SIGCHLD && reason == REASON_NONE) reason = REASON_TERMINATED;
  }
  return reason;
}

static int signalfd_of(const int *watched, size_t count) {
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < count; i++) sigaddset(&set, watched[i]);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* SIGCHLD last, so that the others can be watched without it. */
static const int WATCHED[] = {SIGNAL_OF_KILL, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD};
#define WATCHED_COUNT (sizeof WATCHED / sizeof WATCHED[0])

int signals_of_end(void) { return signalfd_of(WATCHED, WATCHED_COUNT - 1); }

int signals_watch(void) {
  sigset_t all;
  sigfillset(&all);
  return sigprocmask(SIG_SETMASK, &all, NULL) == 0 ? signalfd_of(WATCHED, WATCHED_COUNT) : -1;
}

void signals_unblock(void) {
  unsigned long none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, KERNEL_SIGSET_BYTES);
}
