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

/* Children reaped in one go, beyond those of the last round. In a fork storm, children end as fast as we reap: without a
 * bound nothing else would run, and with a fixed bound zombies would pile up. */
#define REAPED_AT_ONCE 1024

/* After so many rounds it is a fork storm, not a process tree. */
#define CALM_ROUNDS 8

/* How long the init may take to kill the rest before the launcher does. */
#define INIT_PATIENCE_US 1000000

/* Longest wait between two rounds: an orphan becomes our child without a signal. */
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

/* Reads the words of the init. There are none if it was killed, and with it the task. */
static void hear_init(struct reaper *reaper) {
  struct init_word word;
  if (reaper->init_fd == ABSENT) return;
  while (init_hear(reaper->init_fd, &word, &reaper->is_init_gone)) {
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
    } else if (pid == reaper->forwarder_pid) {
      reaper->forwarder_pid = ABSENT; /* the task goes on, without a way out */
    } else if (reaper->has_main_ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
      reaper->leftovers_killed++;
    }
  }
}

void reaper_signal(const struct reaper *reaper, int signal) {
  /* Until the child leads its process group there is only the child itself. An init passes it on. */
  if (reaper->init_fd != ABSENT || kill(-reaper->main_pid, signal) != 0) kill(reaper->main_pid, signal);
}

/* Waits until a child ends or the next round is due. */
static void await_child(int64_t at_most_us) {
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  struct timespec pause = timespec_of_us(at_most_us < ROUND_PAUSE_US ? at_most_us : ROUND_PAUSE_US);
  sigtimedwait(&child_signal, NULL, &pause);
}

/*
 * In a fork storm, hundreds of processes compete for the processors, and our list of children is outdated when we run. With
 * real-time priority, which only root gets, we kill them while they wait: 300 lines of sessions ended in 0.7 s instead of 10.
 * Uses the system call, because musl has no sched_setscheduler.
 */
static void go_first(void) {
  struct sched_param lowest_of_real_time = {.sched_priority = 1};
  syscall(SYS_sched_setscheduler, 0, SCHED_RR, &lowest_of_real_time);
}

void reaper_kill_all(struct reaper *reaper, const struct cgroup *cgroup, int64_t give_up_us) {
  int round = 0;
  if (reaper->forwarder_pid != ABSENT) kill(reaper->forwarder_pid, SIGKILL);
  for (reaper_collect(reaper); !reaper->is_empty; reaper_collect(reaper)) {
    /* With a cgroup, wait for the init as well: a cgroup with a member cannot be removed. */
    if (reaper->is_init_done && reaper->forwarder_pid == ABSENT && !cgroup_is_there(cgroup)) return;
    if (++round == CALM_ROUNDS) go_first();
    int64_t left_us = give_up_us - monotonic_us();
    if (left_us <= 0) {
      reaper->leftovers_alive = children_count();
      return;
    }
    if (reaper->init_fd != ABSENT && left_us > give_up_us - reaper->ended_us - INIT_PATIENCE_US) {
      /* The init kills and counts them. */
      await_child(left_us);
      continue;
    }
    cgroup_kill(cgroup);
    reaper->seen = children_kill(NULL, NULL);
    if (!reaper->has_more) await_child(left_us);
  }
}
