/*
 * The task and all it started.
 *
 * The launcher is a child subreaper: whoever loses its parent becomes a child of the launcher, `setsid` or not. So every
 * process of the task is a child of ours or has an ancestor that is, "no child left" means that nothing is left, and a
 * pid of a child is nobody else's before we have reaped it. That makes two rules: only children are signalled (and their
 * groups), never pids from further down; and what remains is killed in rounds, for as each child goes its own children
 * take its place.
 *
 * What converges: any tree, in as many rounds as it is deep. A storm of forks within a process group, because the kernel
 * lets no fork slip through a signal to that. Any storm at all with a pids cgroup, which forbids new processes first.
 * Without one, a storm of processes that each leave their process group is a race: it is won as soon as every process of it was
 * caught waiting for a processor, and run until `give_up_us`. On two processors 20 lines of processes that start a
 * session, fork and exit were ended in 0.02 s, 300 in 0.7 s, 1,000 in 2 to 6 s.
 */
#ifndef REAPER_H
#define REAPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fault.h"
#include "sandbox/cgroup.h"
#include "supervise/init.h"

struct reaper {
  /* Our child: the task's main process, or the init of its namespace, which tells us of that. */
  pid_t main_pid;
  /* Of the words of the init; ABSENT where there is none. */
  int init_fd;
  bool has_main_ended;
  /* Of the main process: as wait() gave it, and when. */
  int status;
  int64_t ended_us;
  int64_t ended_epoch_ms;
  /* No child of any kind is left. */
  bool is_empty;
  /* The init says that it is the last, and what it has seen used. */
  bool is_init_done;
  struct usage init_usage;
  /* There may be children that have ended and were not reaped yet. */
  bool has_more;
  /* Children at the last look. */
  int64_t seen;
  /* Processes that were still there when the main process had ended, and were killed. */
  int64_t leftovers_killed;
  /* Processes that KILL did not end in time; not known to be ours any more once we are gone. */
  int64_t leftovers_alive;
};

/* Makes us the reaper. To be called before the first child is born. */
struct fault reaper_become(void);

/* Reaps those that have ended, or some of them if there are very many. */
void reaper_collect(struct reaper *reaper);

/* Signals the main process and its process group; with an init, all there are. */
void reaper_signal(const struct reaper *reaper, int signal);

/*
 * Kills and reaps until nothing of the task is left (an init without a cgroup may still be ending), or `give_up_us` of the
 * monotonic clock has come. The main process has ended.
 */
void reaper_kill_all(struct reaper *reaper, const struct cgroup *cgroup, int64_t give_up_us);

#endif
