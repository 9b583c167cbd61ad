#include "supervise/family.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/children.h"
#include "base/clock.h"
#include "supervise/init.h"

/* Children that are reaped in one go, beyond those that were there at the last look: a storm ends them as fast as we
 * can reap, so without a bound there would be no time for anything else, and with a fixed one they would pile up. */
#define REAPED_AT_ONCE 1024

/* Rounds after which it is a storm, not just a family. */
#define CALM_ROUNDS 8

/* How long an init may take to end what is left, before we do. */
#define INIT_PATIENCE_US 1000000

/* Longest wait between two rounds. A grandchild may become our child without a signal that says so. */
#define ROUND_PAUSE_US 5000

struct fault family_found(void) {
  return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? no_fault() : fault_at(STEP_SUPERVISION);
}

static void end_main(struct family *family, int status) {
  family->has_main_ended = true;
  family->status = status;
  family->ended_us = monotonic_us();
  family->ended_epoch_ms = epoch_ms();
}

/* What the init has to say: nothing when it was killed, by us or for want of memory, and with it the task. */
static void hear_init(struct family *family) {
  struct init_word word;
  while (family->init_fd != ABSENT && init_hear(family->init_fd, &word)) {
    if (word.kind == INIT_ENDED) end_main(family, word.status);
    if (word.kind != INIT_DONE) continue;
    family->is_init_done = true;
    family->init_usage = word.usage;
    family->leftovers_killed += word.leftovers;
  }
}

void family_reap(struct family *family) {
  hear_init(family);
  family->has_more = true;
  for (int64_t reaped = 0; reaped < family->seen + REAPED_AT_ONCE; reaped++) {
    int status;
    struct rusage resources;
    pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &resources);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) {
      family->is_empty = pid < 0;
      family->has_more = false;
      return;
    }
    if (WIFSTOPPED(status)) {
      child_let_go(pid, WSTOPSIG(status));
      continue;
    }
    usage_add(&family->usage, usage_of(&resources));
    if (pid == family->main_pid) {
      hear_init(family);
      if (!family->has_main_ended) end_main(family, status);
    } else if (family->has_main_ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
      family->leftovers_killed++;
    }
  }
}

void family_signal(const struct family *family, int signal) {
  /* Until the child leads its group there is only the child itself. An init passes it on. */
  if (family->init_fd != ABSENT || kill(-family->main_pid, signal) != 0) kill(family->main_pid, signal);
}

/* Until a child ends, or it is time for another look. */
static void await_child(int64_t at_most_us) {
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  struct timespec pause = timespec_of_us(at_most_us < ROUND_PAUSE_US ? at_most_us : ROUND_PAUSE_US);
  sigtimedwait(&child_signal, NULL, &pause);
}

/*
 * Hundreds of processes that fork leave us one slice of a processor in hundreds, and by then we have the names of those
 * that were. Before all others, which only root may be, we are through with them while they wait for theirs: 300 lines of
 * sessions ended in 0.7 s instead of 10. By the system call: musl has no sched_setscheduler.
 */
static void go_first(void) {
  struct sched_param lowest_of_real_time = {.sched_priority = 1};
  syscall(SYS_sched_setscheduler, 0, SCHED_RR, &lowest_of_real_time);
}

void family_end(struct family *family, const struct cgroup *group, int64_t give_up_us) {
  int round = 0;
  for (family_reap(family); !family->is_empty; family_reap(family)) {
    /* A cgroup cannot be removed before its last member is gone. */
    if (family->is_init_done && !cgroup_is_there(group)) return;
    if (++round == CALM_ROUNDS) {
      family->has_gone_first = true;
      go_first();
    }
    int64_t left_us = give_up_us - monotonic_us();
    if (left_us <= 0) {
      family->leftovers_alive = children_count();
      return;
    }
    if (family->init_fd != ABSENT && left_us > give_up_us - family->ended_us - INIT_PATIENCE_US) {
      /* It is doing the same, and counts. */
      await_child(left_us);
      continue;
    }
    cgroup_kill(group);
    family->seen = children_kill(NULL, NULL);
    if (!family->has_more) await_child(left_us);
  }
}

bool family_leave(void) {
  int64_t until_us = monotonic_us() + INIT_PATIENCE_US;
  for (;;) {
    pid_t pid = waitpid(-1, NULL, WNOHANG | __WALL);
    int64_t left_us = until_us - monotonic_us();
    if (pid < 0 && errno != EINTR) return true;
    if (left_us <= 0) return false;
    if (pid == 0) await_child(left_us);
  }
}
