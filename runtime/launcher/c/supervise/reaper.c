#include "supervise/reaper.h"

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

/* Rounds after which it is a storm, not just a tree of processes. */
#define CALM_ROUNDS 8

/* How long an init may take to end what is left, before we do. */
#define INIT_PATIENCE_US 1000000

/* Longest wait between two rounds. A grandchild may become our child without a signal that says so. */
#define ROUND_PAUSE_US 5000

struct fault reaper_become(void) {
  return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? no_fault() : fault_at(STEP_SUPERVISION);
}

static void end_main(struct reaper *reaper, int status) {
  reaper->has_main_ended = true;
  reaper->status = status;
  reaper->ended_us = monotonic_us();
  reaper->ended_epoch_ms = epoch_ms();
}

/* What the init has to say: nothing when it was killed, by us or for want of memory, and with it the task. */
static void hear_init(struct reaper *reaper) {
  struct init_word word;
  while (reaper->init_fd != ABSENT && init_hear(reaper->init_fd, &word)) {
    if (word.kind == INIT_ENDED) end_main(reaper, word.status);
    if (word.kind != INIT_DONE) continue;
    reaper->is_init_done = true;
    reaper->init_usage = word.usage;
    reaper->leftovers_killed += word.leftovers;
  }
}

void reaper_collect(struct reaper *reaper) {
  hear_init(reaper);
  reaper->has_more = true;
  for (int64_t reaped = 0; reaped < reaper->seen + REAPED_AT_ONCE; reaped++) {
    int status;
    pid_t pid = child_reap(&status, false);
    if (pid <= 0) {
      reaper->is_empty = pid < 0;
      reaper->has_more = false;
      return;
    }
    if (pid == reaper->main_pid) {
      hear_init(reaper);
      if (!reaper->has_main_ended) end_main(reaper, status);
    } else if (reaper->has_main_ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
      reaper->leftovers_killed++;
    }
  }
}

void reaper_signal(const struct reaper *reaper, int signal) {
  /* Until the child leads its process group there is only the child itself. An init passes it on. */
  if (reaper->init_fd != ABSENT || kill(-reaper->main_pid, signal) != 0) kill(reaper->main_pid, signal);
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

void reaper_kill_all(struct reaper *reaper, const struct cgroup *cgroup, int64_t give_up_us) {
  int round = 0;
  for (reaper_collect(reaper); !reaper->is_empty; reaper_collect(reaper)) {
    /* A cgroup cannot be removed before its last member is gone. */
    if (reaper->is_init_done && !cgroup_is_there(cgroup)) return;
    if (++round == CALM_ROUNDS) go_first();
    int64_t left_us = give_up_us - monotonic_us();
    if (left_us <= 0) {
      reaper->leftovers_alive = children_count();
      return;
    }
    if (reaper->init_fd != ABSENT && left_us > give_up_us - reaper->ended_us - INIT_PATIENCE_US) {
      /* It is doing the same, and counts. */
      await_child(left_us);
      continue;
    }
    cgroup_kill(cgroup);
    reaper->seen = children_kill(NULL, NULL);
    if (!reaper->has_more) await_child(left_us);
  }
}
